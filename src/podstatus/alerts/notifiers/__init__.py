"""Notifiers: log, Kubernetes event, webhook and Alertmanager, and the HTTP they share.

A notifier sends once and raises an error that says whether to retry; queues and retries belong in
delivery. Secrets are read from files and redacted from every message. Tests:
tests/alerts/notifiers.
"""
