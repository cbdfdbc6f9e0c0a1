"""Pure decisions of delivery: which notifications are due, and when one is retried.

Nothing here waits, sends or reads a clock: `alerts.delivery.dispatcher` does.
Tests: tests/alerts/delivery/decide.
"""
