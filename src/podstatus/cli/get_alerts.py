"""`podstatus get alerts`: what the agent's rules find wrong. Nobody but the agent knows it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from podstatus.cli.client.api_server import RequestError
from podstatus.cli.client.query_client import QueryClient
from podstatus.cli.render.tables import Table
from podstatus.cli.terminal import print_table, write, write_json, write_yaml
from podstatus.kube.scalars.human_duration import format_age
from podstatus.kube.scalars.time import UNSET_TIME, Time

ALERT_KINDS = ("alerts", "alert")
_HEADINGS = ("ALERT", "SEVERITY", "STATE", "SUBJECT", "SINCE", "SUMMARY")
_WIDE_HEADINGS = ("NODE", "RESOLVED")
_MAX_NAMES = 3
"""Rules of a receiver: the Alertmanager of the settings has more than fit a line."""


class AlertSubjectItem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an alert is about."""

    scope: Literal["pod", "node"]
    name: str
    namespace: str = ""
    uid: str = ""
    node: str = ""

    def __str__(self) -> str:
        return f"{self.scope}/{f'{self.namespace}/' if self.namespace else ''}{self.name}"


class AlertItem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An alert, as it travels."""

    id: str
    rule: str
    state: str
    severity: str
    subject: AlertSubjectItem
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    since: Time
    fired: Time = UNSET_TIME
    ceased: Time = UNSET_TIME
    resolved: Time = UNSET_TIME


class AlertRuleItem(msgspec.Struct, frozen=True, kw_only=True):
    """How a rule fares."""

    name: str
    problem: str = ""


class AlertReceiverItem(msgspec.Struct, frozen=True, kw_only=True):
    """How a receiver fares."""

    name: str
    problem: str = ""
    rules: tuple[str, ...] = ()

    def applies_to(self, rule: str | None) -> bool:
        """Whether it is told of this rule; what no rule names, as the disk, concerns all."""
        return not rule or not self.rules or rule in self.rules

    @property
    def rule_names(self) -> str:
        """The rules that it is told of, in a few words; empty: none is known."""
        if not self.rules:
            return ""
        more = len(self.rules) - _MAX_NAMES
        named = ", ".join(self.rules[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")
        return f" (rule{'s' if len(self.rules) > 1 else ''} {named})"


class AlertItems(msgspec.Struct, frozen=True, kw_only=True):
    """All that was asked for."""

    alerts: tuple[AlertItem, ...]
    remaining: int = 0
    rules: tuple[AlertRuleItem, ...] = ()
    deliveries: tuple[AlertReceiverItem, ...] = ()


def print_alerts(
    client: QueryClient, rule: str | None, namespace: str | None, output: str | None, now: Time
) -> None:
    """Print them, of one rule or all, of one namespace or everything. Raises CannotAskError."""
    query = {"rule": rule, "namespace": namespace, "limit": "5000"}
    answer = client.get(
        "/v1/alerts", {name: text for name, text in query.items() if text}, AlertItems
    )
    _check_rule(rule, answer)
    _PRINTERS.get(output or "", _print_table)(answer.alerts, now)
    if output in (None, "wide"):
        _print_problems(answer, rule)


def _check_rule(rule: str | None, items: AlertItems) -> None:
    """An alert may be there of a rule that is not any more."""
    names = {it.name for it in items.rules} | {it.rule for it in items.alerts}
    if rule and rule not in names:
        there = f"; there are: {', '.join(sorted(names))}" if names else ""
        raise RequestError(f"there is no rule {rule}{there}")


def alert_table(alerts: Sequence[AlertItem], now: Time, *, wide: bool = False) -> Table:
    """A row for each."""
    return Table(
        (*_HEADINGS[:-1], *(_WIDE_HEADINGS if wide else ()), _HEADINGS[-1]),
        tuple(_row(alert, now, wide=wide) for alert in alerts),
    )


def _row(alert: AlertItem, now: Time, *, wide: bool) -> tuple[str, ...]:
    told = alert.annotations.get("summary") or alert.annotations.get("description") or ""
    resolved = format_age(alert.resolved, now) if alert.resolved else ""
    return (
        alert.rule,
        alert.severity,
        alert.state,
        str(alert.subject),
        format_age(alert.since, now),
        *((alert.subject.node, resolved) if wide else ()),
        told,
    )


def _print_table(alerts: Sequence[AlertItem], now: Time) -> None:
    if alerts:
        print_table(alert_table(alerts, now))
    else:
        write("No alerts\n", err=True)


def _print_wide(alerts: Sequence[AlertItem], now: Time) -> None:
    if alerts:
        print_table(alert_table(alerts, now, wide=True))
    else:
        write("No alerts\n", err=True)


def _print_names(alerts: Sequence[AlertItem], _: Time) -> None:
    for alert in alerts:
        write(f"alert/{alert.rule} {alert.subject}\n")


_PRINTERS: Mapping[str, Callable[[Sequence[AlertItem], Time], None]] = {
    "wide": _print_wide,
    "name": _print_names,
    "json": lambda alerts, _: write_json({"alerts": alerts}),
    "yaml": lambda alerts, _: write_yaml({"alerts": alerts}),
}


def _print_problems(items: AlertItems, rule_name: str | None) -> None:
    """What keeps rules from being asked, and receivers from being told: of one rule, or all."""
    if items.remaining:
        write(f"podstatus: {items.remaining} more; name a rule, or a namespace\n", err=True)
    for rule in items.rules:
        if rule.problem and rule_name in (None, rule.name):
            write(f"podstatus: rule {rule.name}: {rule.problem}\n", err=True)
    for delivery in items.deliveries:
        if delivery.problem and delivery.applies_to(rule_name):
            told = f"{delivery.name}{delivery.rule_names}: {delivery.problem}"
            write(f"podstatus: {told}\n", err=True)
