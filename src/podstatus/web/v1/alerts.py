"""Filter and encode alerts: `/v1/alerts?state=firing&severity=critical`."""

from collections.abc import Iterable, Mapping

import msgspec

from podstatus.alerts.model import Alert, AlertState, Severity
from podstatus.alerts.ports import AlertReader
from podstatus.observe.ports import Freshness
from podstatus.web.query_parameters import Query
from podstatus.web.v1.filters import list_values, parse_choice
from podstatus.web.v1.wire import AlertsResponse, AlertView, rfc3339_millis

FILTERS: Mapping[str, str] = {
    "state": "alerts in one of these states, separated by commas: pending, firing, resolved",
    "severity": "alerts of one of these severities, separated by commas: info, warning, critical",
    "rule": "alerts of one of these rules, separated by commas",
    "namespace": "alerts about pods in this namespace",
}
"""The filter parameters with their descriptions."""
MAX_ALERTS = 5_000
"""Of one response."""
STATES: tuple[AlertState, ...] = ("firing", "pending", "resolved")
"""In the order of a response."""
SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")


class AlertFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects alerts; an empty field selects all."""

    states: tuple[str, ...] = ()
    severities: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()

    def matches(self, alert: Alert) -> bool:
        """Whether all non-empty fields match the alert."""
        return (
            alert.state in (self.states or (alert.state,))
            and alert.severity in (self.severities or (alert.severity,))
            and alert.rule in (self.rules or (alert.rule,))
            and alert.subject.namespace in (self.namespaces or (alert.subject.namespace,))
        )


def alert_filter(query: Query) -> AlertFilter:
    """The filter of a query. Raises HttpError for an unknown value."""
    return AlertFilter(
        states=tuple(parse_choice("state", it, STATES) for it in list_values(query, "state")),
        severities=tuple(
            parse_choice("severity", it, SEVERITIES) for it in list_values(query, "severity")
        ),
        rules=tuple(list_values(query, "rule")),
        namespaces=tuple(list_values(query, "namespace")),
    )


def list_alerts(
    alerts: AlertReader, freshness: Freshness, query: Query, limit: int
) -> AlertsResponse:
    """The response of /v1/alerts. Raises HttpError."""
    filter_ = alert_filter(query)
    selected = sort_alerts(it for it in alerts.alerts().values() if filter_.matches(it))
    return AlertsResponse(
        freshness=freshness,
        alerts=tuple(map(alert_view, selected[:limit])),
        remaining=max(0, len(selected) - limit),
        rules=tuple(alerts.rules()),
        deliveries=tuple(alerts.deliveries()),
    )


def sort_alerts(alerts: Iterable[Alert]) -> list[Alert]:
    """Sort by state (firing first), severity (critical first), subject, rule and time."""
    return sorted(alerts, key=_sort_key)


def _sort_key(alert: Alert) -> tuple[int, int, str, str, str, int]:
    subject = alert.subject
    return (
        STATES.index(alert.state),
        SEVERITIES.index(alert.severity),
        subject.namespace,
        subject.name,
        alert.rule,
        alert.since,
    )


def alert_view(alert: Alert) -> AlertView:
    return AlertView(
        id=alert.id,
        rule=alert.rule,
        state=alert.state,
        severity=alert.severity,
        subject=alert.subject,
        labels=alert.labels,
        annotations=alert.annotations,
        active_at=rfc3339_millis(alert.since),
        fired_at=_format_time(alert.fired),
        inactive_since=_format_time(alert.ceased),
        resolved_at=_format_time(alert.resolved),
    )


def _format_time(at: int) -> str:
    return rfc3339_millis(at) if at else ""
