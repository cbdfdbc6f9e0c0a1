"""`podstatus get alerts`: the alerts of an agent or an observer."""

import os
from collections.abc import Sequence
from pathlib import Path

from podstatus.alerts.ports import DeliveryState
from podstatus.cli.client.https_client import find_agent
from podstatus.cli.client.query_api_client import QueryClient
from podstatus.cli.client.request_errors import RequestError
from podstatus.cli.client.server_objects import current_time
from podstatus.cli.document_output import write_json, write_yaml
from podstatus.cli.errors import warn
from podstatus.cli.render.tables import Table
from podstatus.cli.styled_output import print_table
from podstatus.cli.terminal import write
from podstatus.kube.scalars.human_duration import format_age
from podstatus.kube.scalars.time import Time, TimeError
from podstatus.web.v1.wire import AlertsResponse, AlertView

_HEADINGS = ("ALERT", "SEVERITY", "STATE", "SUBJECT", "SINCE", "SUMMARY")
_WIDE_HEADINGS = ("NODE", "RESOLVED")
_MAX_NAMES = 3
"""Maximum rules to list per receiver; --alertmanager-url receives those of many rules."""


def get_alerts(
    root_dir: Path | None, rule: str | None, namespace: str | None, output: str | None
) -> None:
    """Print the alerts of `rule` and `namespace`, None for all. Raises RequestError."""
    agent, now = find_agent(root_dir, os.environ), current_time()
    client = QueryClient(agent)
    query = {"rule": rule, "namespace": namespace, "limit": "5000"}
    response = client.get(
        "/v1/alerts", {name: text for name, text in query.items() if text}, AlertsResponse
    )
    _check_rule(rule, response)
    _print(response.alerts, output, now)
    if output in (None, "wide"):
        _print_problems(response, rule)


def _check_rule(rule: str | None, items: AlertsResponse) -> None:
    """Raise RequestError if neither a rule nor an alert has this rule name.

    A resolved alert may belong to a rule that has been removed.
    """
    names = {it.name for it in items.rules} | {it.rule for it in items.alerts}
    if rule and rule not in names:
        hint = f"; rules: {', '.join(sorted(names))}" if names else ""
        raise RequestError(f"no such rule: {rule}{hint}")


def alert_table(alerts: Sequence[AlertView], now: Time, *, wide: bool = False) -> Table:
    """Return a table with a row per alert."""
    return Table(
        (*_HEADINGS[:-1], *(_WIDE_HEADINGS if wide else ()), _HEADINGS[-1]),
        tuple(_row(alert, now, wide=wide) for alert in alerts),
    )


def _row(alert: AlertView, now: Time, *, wide: bool) -> tuple[str, ...]:
    summary = alert.annotations.get("summary") or alert.annotations.get("description") or ""
    resolved = _age(alert.resolved_at, now) if alert.resolved_at else ""
    return (
        alert.rule,
        alert.severity,
        alert.state,
        _subject(alert),
        _age(alert.active_at, now),
        *((alert.subject.node, resolved) if wide else ()),
        summary,
    )


def _subject(alert: AlertView) -> str:
    """Return the subject as `pod/default/web` or `node/laptop`."""
    subject = alert.subject
    return f"{subject.scope}/{f'{subject.namespace}/' if subject.namespace else ''}{subject.name}"


def _age(time: str, now: Time) -> str:
    """Raises RequestError for a time that is not RFC 3339."""
    try:
        return format_age(Time.parse(time), now)
    except TimeError as error:
        raise RequestError(f"cannot decode the response of the agent: {error}") from error


def _print(alerts: Sequence[AlertView], output: str | None, now: Time) -> None:
    match output:
        case "name":
            for alert in alerts:
                write(f"alert/{alert.rule} {_subject(alert)}\n")
        case "json":
            write_json({"alerts": alerts})
        case "yaml":
            write_yaml({"alerts": alerts})
        case _ if alerts:
            print_table(alert_table(alerts, now, wide=output == "wide"))
        case _:
            write("No alerts\n", err=True)


def _print_problems(items: AlertsResponse, rule_name: str | None) -> None:
    """Print the errors of rules and receivers, of one rule or all."""
    if items.remaining:
        message = f"{items.remaining} more alerts are not shown; pass a rule or a namespace"
        warn(message)
    for rule in items.rules:
        if rule.problem and rule_name in (None, rule.name):
            warn(f"rule {rule.name}: {rule.problem}")
    for delivery in items.deliveries:
        if delivery.problem and _applies_to(delivery, rule_name):
            message = f"{delivery.name}{_rule_names(delivery)}: {delivery.problem}"
            warn(message)


def _applies_to(delivery: DeliveryState, rule: str | None) -> bool:
    """True if the receiver gets alerts of this rule; one without rules concerns all."""
    return not rule or not delivery.rules or rule in delivery.rules


def _rule_names(delivery: DeliveryState) -> str:
    """The rules of a receiver in parentheses; empty if it has none."""
    if not delivery.rules:
        return ""
    more = len(delivery.rules) - _MAX_NAMES
    names = ", ".join(delivery.rules[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")
    return f" (rule{'s' if len(delivery.rules) > 1 else ''} {names})"
