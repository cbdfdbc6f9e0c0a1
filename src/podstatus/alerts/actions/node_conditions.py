"""Node conditions of alerts: True while an alert fires, and at most for their TTL.

They are derived from the firing alerts whenever the node status is generated: after a restart a
condition is present if its alert still fires, and gone if it does not.
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
"""TTL of a condition whose action sets none."""
_MAX_MESSAGE_LENGTH = 1000
_SECOND = 1_000_000_000
REPORT_RATE_LIMIT = TokenBucket(burst=5, interval_ns=10 * _SECOND)
"""How often alerts trigger a node status update, so that a flapping alert does not flood the API
server."""


class NodeConditionNotifier:
    """The action `nodeCondition`: triggers a node status update, within the rate limit.

    Above the limit nothing is lost: the next periodic status has the condition.
    """

    def __init__(self, report_now: Callable[[], None], *, clock: Clock) -> None:
        self._report_now = report_now
        self._clock = clock
        self._bucket = REPORT_RATE_LIMIT

    async def send(self, action: Action, alert: Alert) -> None:
        """Request a node status update. Raises ActionError if the condition type is invalid."""
        condition_type(action, alert)
        self._bucket, allowed = self._bucket.try_acquire(self._clock.monotonic())
        if allowed:
            self._report_now()


def alert_conditions(
    firing: Iterable[tuple[Alert, Action]], now: int
) -> tuple[AlertCondition, ...]:
    """Return the conditions at `now`; if alerts share a type, the oldest sets the message.

    `now` and the times of the alerts are monotonic.
    """
    alerts_by_type: dict[str, list[Alert]] = {}
    for alert, action in sorted(firing, key=lambda it: (it[0].fired, it[0].id)):
        if action.kind == KIND and now < _expires_at(alert, action):
            try:
                alerts_by_type.setdefault(condition_type(action, alert), []).append(alert)
            except ActionError:
                continue
    return tuple(_alert_condition(type_, alerts) for type_, alerts in alerts_by_type.items())


def condition_type(action: Action, alert: Alert) -> str:
    """Return the condition type with the prefix. Raises ActionError if it is invalid."""
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
