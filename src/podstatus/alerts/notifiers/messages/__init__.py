"""The messages of the notifiers as pure functions, and what is redacted in them.

Nothing here sends: `alerts.notifiers.webhook` and `alerts.notifiers.alertmanager` do.
Tests: tests/alerts/notifiers.
"""
