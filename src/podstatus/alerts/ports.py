"""Ports of alerting: what readers can query, and what notifiers and remediations implement.

ActionError              permanent: a retry would fail again
└── RetryableError       failed now, or the outcome is unknown: retry later
    └── NotSentError     certainly not received: as if it had not been tried
"""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from podstatus.alerts.model import Action, Alert, AlertId, RuleState


class DeliveryState(msgspec.Struct, frozen=True, kw_only=True):
    """Status of a receiver and its queue."""

    name: str
    """Kind and address, without secrets: `webhook https://…`."""
    delivered: int = 0
    waiting: int = 0
    dropped: int = 0
    """Dropped: queue full, or permanently rejected."""
    problem: str = ""
    """Why deliveries currently fail; empty if they succeed."""
    rules: tuple[str, ...] = ()
    """The rules whose alerts are sent to it, in the order of their files."""


class AlertReader(Protocol):
    """Read access to alerts, rules and receivers. Methods do not block."""

    def alerts(self) -> Mapping[AlertId, Alert]:
        """Return pending and firing alerts, and those resolved recently."""

    def rules(self) -> Sequence[RuleState]:
        """Return all rules, in the order of their files."""

    def deliveries(self) -> Sequence[DeliveryState]:
        """Return the status of all receivers."""


class AlertNotifier(Protocol):
    """An action kind: sends a notification or acts when an alert fires or resolves."""

    async def send(self, action: Action, alert: Alert) -> None:
        """Send one alert. Raises RetryableError to be called again later, ActionError if it is
        final.

        After a restart the same alert may be sent twice; its ID and state identify it.
        """


class Remediation(Protocol):
    """An action that changes the cluster. Only the guard calls it."""

    def describe(self, action: Action, alert: Alert) -> str:
        """Return what it would do: `restart container app`. Raises ActionError if it cannot."""

    async def apply(self, action: Action, alert: Alert) -> None:
        """Apply the change. Raises like `AlertNotifier.send`."""

    async def revert(self, action: Action, alert: Alert) -> None:
        """Undo what can be undone when the alert resolves; also called if it was never applied."""


@runtime_checkable
class BatchAlertNotifier(Protocol):
    """An action kind that takes many alerts at once and wants firing alerts to be repeated."""

    max_batch: int
    """Maximum number of alerts in one call."""
    resend_seconds: float
    """How often all firing alerts are sent again, although nothing has changed."""

    async def send_batch(self, action: Action, alerts: Sequence[Alert]) -> None:
        """Send the alerts, oldest first. Raises like `AlertNotifier.send`.

        After an ActionError for several alerts, the batch is split and retried.
        """


class ActionError(Exception):
    """Permanent failure of an action; the message says why and what to do."""


class RetryableError(ActionError):
    """Temporary failure of an action, or its outcome is unknown."""

    def __init__(self, message: str, *, retry_after_seconds: float = 0.0) -> None:
        """`retry_after_seconds`: the minimum wait that the server requested, if any."""
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class NotSentError(RetryableError):
    """The request certainly did not reach the receiver."""
