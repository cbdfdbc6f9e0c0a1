"""Which alerts are asked for, and how they are shown: `?state=firing&severity=critical`."""

from collections.abc import Iterable, Mapping

import msgspec

from podstatus.alerts.model import Alert, AlertState, RuleState, Severity, Subject
from podstatus.alerts.ports import AlertReader, DeliveryState
from podstatus.observe.status_view import Knowledge
from podstatus.web.query_parameters import Query
from podstatus.web.v1.filters import one_of, several
from podstatus.web.v1.wire import to_the_millisecond

FILTERS: Mapping[str, str] = {
    "state": "alerts in one of these states, separated by commas: pending, firing, resolved",
    "severity": "alerts of one of these severities, separated by commas: info, warning, critical",
    "rule": "alerts of one of these rules, separated by commas",
    "namespace": "alerts about pods of this namespace",
}
"""What alerts can be asked for by, and what it means."""
MOST_ALERTS = 5_000
"""In one answer."""
STATES: tuple[AlertState, ...] = ("firing", "pending", "resolved")
"""In the order that they are shown."""
SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")


class AlertShown(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An alert."""

    id: str
    """Of one life of it: it fires again under another."""
    rule: str
    state: AlertState
    severity: Severity
    subject: Subject
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    since: str
    """When it began to hold."""
    fired: str = ""
    """When it began to fire; left out: not yet."""
    ceased: str = ""
    """When it ceased to hold; left out: it holds."""
    resolved: str = ""
    """When it ended; left out: not yet."""


class AlertsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Alerts, those that fire first; and how rules and receivers fare."""

    knowledge: Knowledge
    alerts: tuple[AlertShown, ...]
    remaining: int = 0
    """How many more there are."""
    rules: tuple[RuleState, ...] = ()
    deliveries: tuple[DeliveryState, ...] = ()


class AlertFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which alerts; without anything, all."""

    states: tuple[str, ...] = ()
    severities: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()

    def matches(self, alert: Alert) -> bool:
        """Whether the alert is one of them."""
        return (
            alert.state in (self.states or (alert.state,))
            and alert.severity in (self.severities or (alert.severity,))
            and alert.rule in (self.rules or (alert.rule,))
            and alert.subject.namespace in (self.namespaces or (alert.subject.namespace,))
        )


def alert_filter(query: Query) -> AlertFilter:
    """The filter of a query. Raises Refusal."""
    return AlertFilter(
        states=tuple(one_of("state", it, STATES) for it in several(query, "state")),
        severities=tuple(one_of("severity", it, SEVERITIES) for it in several(query, "severity")),
        rules=tuple(several(query, "rule")),
        namespaces=tuple(several(query, "namespace")),
    )


def answer_alerts(
    alerts: AlertReader, knowledge: Knowledge, query: Query, limit: int
) -> AlertsAnswer:
    """What is answered. Raises Refusal."""
    wanted = alert_filter(query)
    found = in_order(it for it in alerts.alerts().values() if wanted.matches(it))
    return AlertsAnswer(
        knowledge=knowledge,
        alerts=tuple(map(show_alert, found[:limit])),
        remaining=max(0, len(found) - limit),
        rules=tuple(alerts.rules()),
        deliveries=tuple(alerts.deliveries()),
    )


def in_order(alerts: Iterable[Alert]) -> list[Alert]:
    """Those that fire first, of these the gravest; then by whom they are about."""
    return sorted(alerts, key=_rank)


def _rank(alert: Alert) -> tuple[int, int, str, str, str, int]:
    subject = alert.subject
    return (
        STATES.index(alert.state),
        SEVERITIES.index(alert.severity),
        subject.namespace,
        subject.name,
        alert.rule,
        alert.since,
    )


def show_alert(alert: Alert) -> AlertShown:
    """An alert as it travels."""
    return AlertShown(
        id=alert.id,
        rule=alert.rule,
        state=alert.state,
        severity=alert.severity,
        subject=alert.subject,
        labels=alert.labels,
        annotations=alert.annotations,
        since=to_the_millisecond(alert.since),
        fired=_moment(alert.fired),
        ceased=_moment(alert.ceased),
        resolved=_moment(alert.resolved),
    )


def _moment(at: int) -> str:
    return to_the_millisecond(at) if at else ""
