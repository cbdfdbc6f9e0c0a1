"""The alert metrics of one scrape."""

from collections.abc import Iterator
from itertools import islice

from podstatus.alerts.model import Alert
from podstatus.alerts.ports import AlertReader
from podstatus.observe.metrics import podstatus_catalog as table
from podstatus.observe.metrics.model import Labels, Samples, by_label, single

MAX_SERIES = 1_000
"""Upper bound of the ALERTS series, so that the page stays small when much goes wrong at once."""


def alert_metrics(alerts: AlertReader) -> Iterator[Samples]:
    active = [it for it in alerts.alerts().values() if it.state != "resolved"]
    # Firing alerts first: they are kept when the series are truncated.
    active.sort(key=lambda alert: alert.state != "firing")
    yield Samples(table.ALERTS, {_labels(it): 1 for it in islice(active, MAX_SERIES)})
    yield single(table.ALERTS_TRUNCATED, max(0, len(active) - MAX_SERIES))
    rules = alerts.rules()
    yield by_label(table.ALERT_RULES_FAILING, {rule.name: rule.failing for rule in rules})
    yield by_label(table.ALERT_RULE_FAILURES, {rule.name: rule.failures for rule in rules})
    off = {rule.name: int(rule.switched_off) for rule in rules}
    yield by_label(table.ALERT_RULE_DISABLED, off)
    receivers = alerts.deliveries()
    yield by_label(table.ALERT_DELIVERIES, {it.name: it.delivered for it in receivers})
    yield by_label(table.ALERT_DELIVERIES_DROPPED, {it.name: it.dropped for it in receivers})
    yield by_label(table.ALERT_DELIVERIES_WAITING, {it.name: it.waiting for it in receivers})


def leader_metric(lease: str, *, leads: bool) -> Samples:
    """Return whether this process holds the lease and so notifies."""
    return by_label(table.LEADER, {lease: int(leads)})


def _labels(alert: Alert) -> Labels:
    subject = alert.subject
    pod = subject.name if subject.scope == "pod" else ""
    return (alert.rule, alert.state, alert.severity, subject.namespace, pod, subject.node)
