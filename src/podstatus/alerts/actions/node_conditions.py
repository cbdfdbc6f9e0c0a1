"""The conditions of the node that alerts state: while they fire, and not for longer than allowed.

They follow from the alerts that fire, every time the status of the node is made: what was stated
before a restart is there after it if its alert still fires, and goes if it does not.
"""

from collections.abc import Callable, Iterable

from podstatus.alerts.actions.name_prefix import own_name
from podstatus.alerts.model import Action, Alert
from podstatus.alerts.notifiers.event import summary_of
from podstatus.alerts.ports import DeedError
from podstatus.alerts.rules.durations import SpanError, parse_span
from podstatus.base.clock import Clock
from podstatus.base.token_bucket import TokenBucket
from podstatus.node.decide.conditions import AlertCondition

KIND = "nodeCondition"
TTL = "1h"
"""How long a condition is stated if its action says nothing."""
_LONGEST = 1000
_SECOND = 1_000_000_000
AT_ONCE = TokenBucket(burst=5, interval_ns=10 * _SECOND)
"""How often alerts have the status of the node made anew: one that flaps does not fill the API
server with statuses."""


class ConditionDeed:
    """The action `nodeCondition`: has the status of the node made anew at once, if that is seldom.

    The next status shows it in any case, so what comes too often needs nothing.
    """

    def __init__(self, look: Callable[[], None], *, clock: Clock) -> None:
        self._look = look
        self._clock = clock
        self._left = AT_ONCE

    async def do(self, action: Action, alert: Alert) -> None:
        """The conditions of the node have changed. Raises DeedError if this one cannot be."""
        condition_type(action, alert)
        self._left, allowed = self._left.try_acquire(self._clock.now())
        if allowed:
            self._look()


def stated_conditions(
    firing: Iterable[tuple[Alert, Action]], now: int
) -> tuple[AlertCondition, ...]:
    """What is stated now; of several alerts with the same type, what the oldest says."""
    found: dict[str, list[Alert]] = {}
    for alert, action in sorted(firing, key=lambda it: (it[0].fired, it[0].id)):
        if action.kind == KIND and now < _until(alert, action):
            try:
                found.setdefault(condition_type(action, alert), []).append(alert)
            except DeedError:
                continue
    return tuple(_stated(type_, alerts) for type_, alerts in found.items())


def condition_type(action: Action, alert: Alert) -> str:
    """With our prefix. Raises DeedError if it cannot be one."""
    return own_name(action.options.get("type") or alert.rule)


def _until(alert: Alert, action: Action) -> int:
    try:
        seconds = parse_span(action.options.get("ttl") or TTL)
    except SpanError:
        seconds = parse_span(TTL)
    return alert.fired + round(seconds * _SECOND)


def _stated(type_: str, alerts: list[Alert]) -> AlertCondition:
    first, others = alerts[0], len(alerts) - 1
    more = f" (and {others} more)" if others else ""
    return AlertCondition(
        type=type_, reason=first.rule, message=summary_of(first)[:_LONGEST] + more
    )
