"""The conditions of the node that alerts state: while they fire, and not for longer than allowed.

They follow from the alerts that fire, every time the status of the node is made: what was stated
before a restart is there after it if its alert still fires, and goes if it does not.
"""

from collections.abc import Callable, Iterable

from podstatus.alerts.actions.name_prefix import prefixed_name
from podstatus.alerts.model import Action, Alert
from podstatus.alerts.notifiers.event import alert_summary
from podstatus.alerts.ports import ActionError
from podstatus.alerts.rules.durations import RuleDurationError, parse_duration
from podstatus.base.clock import Clock
from podstatus.base.token_bucket import TokenBucket
from podstatus.node.decide.conditions import AlertCondition

KIND = "nodeCondition"
DEFAULT_TTL = "1h"
"""How long a condition is stated if its action says nothing."""
_MAX_MESSAGE_LENGTH = 1000
_SECOND = 1_000_000_000
REPORT_RATE_LIMIT = TokenBucket(burst=5, interval_ns=10 * _SECOND)
"""How often alerts have the status of the node made anew: one that flaps does not fill the API
server with statuses."""


class NodeConditionNotifier:
    """The action `nodeCondition`: has the status of the node made anew at once, if that is seldom.

    The next status shows it in any case, so what comes too often needs nothing.
    """

    def __init__(self, report_now: Callable[[], None], *, clock: Clock) -> None:
        self._report_now = report_now
        self._clock = clock
        self._bucket = REPORT_RATE_LIMIT

    async def send(self, action: Action, alert: Alert) -> None:
        """The conditions of the node have changed. Raises DeedError if this one cannot be."""
        condition_type(action, alert)
        self._bucket, allowed = self._bucket.try_acquire(self._clock.now())
        if allowed:
            self._report_now()


def alert_conditions(
    firing: Iterable[tuple[Alert, Action]], now: int
) -> tuple[AlertCondition, ...]:
    """What is stated now; of several alerts with the same type, what the oldest says."""
    found: dict[str, list[Alert]] = {}
    for alert, action in sorted(firing, key=lambda it: (it[0].fired, it[0].id)):
        if action.kind == KIND and now < _expires_at(alert, action):
            try:
                found.setdefault(condition_type(action, alert), []).append(alert)
            except ActionError:
                continue
    return tuple(_alert_condition(type_, alerts) for type_, alerts in found.items())


def condition_type(action: Action, alert: Alert) -> str:
    """With our prefix. Raises DeedError if it cannot be one."""
    return prefixed_name(action.options.get("type") or alert.rule)


def _expires_at(alert: Alert, action: Action) -> int:
    try:
        seconds = parse_duration(action.options.get("ttl") or DEFAULT_TTL)
    except RuleDurationError:
        seconds = parse_duration(DEFAULT_TTL)
    return alert.fired + round(seconds * _SECOND)


def _alert_condition(type_: str, alerts: list[Alert]) -> AlertCondition:
    first, others = alerts[0], len(alerts) - 1
    more = f" (and {others} more)" if others else ""
    return AlertCondition(
        type=type_, reason=first.rule, message=alert_summary(first)[:_MAX_MESSAGE_LENGTH] + more
    )
