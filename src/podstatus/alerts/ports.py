"""What alerts need from others, and what others may ask of them.

DeedError                  it will not be done, ever: the same again is of no use
└── TransientDeedError     it was not done now, or nobody knows: again later
    └── NotReachedError    nobody has heard of it: as if it had not been tried
"""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from podstatus.alerts.model import Action, Alert, AlertId, RuleState


class DeliveryState(msgspec.Struct, frozen=True, kw_only=True):
    """How a receiver fares."""

    name: str
    """What it is and where: `webhook https://…`, without secrets."""
    delivered: int = 0
    waiting: int = 0
    dropped: int = 0
    """What found its queue full, or was refused for good."""
    problem: str = ""
    """Why nothing goes through at present; empty: it does."""
    rules: tuple[str, ...] = ()
    """Those whose alerts it is told of, in the order of their files."""


class AlertReader(Protocol):
    """What is alerted, for those who ask. Nothing here waits."""

    def alerts(self) -> Mapping[AlertId, Alert]:
        """Those that are pending or firing, and those that resolved a while ago."""

    def rules(self) -> Sequence[RuleState]:
        """All rules, in the order of their files."""

    def deliveries(self) -> Sequence[DeliveryState]:
        """All receivers."""


class AlertNotifier(Protocol):
    """A kind of action: it tells somebody, or does something, when an alert fires or resolves."""

    async def send(self, action: Action, alert: Alert) -> None:
        """Do it. Raises TransientDeedError to be asked again later, DeedError if that is useless.

        The same may be asked twice after a restart: the id of the alert and its state tell.
        """


class Remediation(Protocol):
    """A deed that changes something in the cluster: nobody but the guard asks for it."""

    def describe(self, action: Action, alert: Alert) -> str:
        """What it would do: `restart container app`. Raises DeedError if it cannot be done."""

    async def apply(self, action: Action, alert: Alert) -> None:
        """Do it. Raises as a `AlertNotifier` does."""

    async def revert(self, action: Action, alert: Alert) -> None:
        """Take back what can be, when the alert resolved; also if it was never done."""


@runtime_checkable
class BatchAlertNotifier(Protocol):
    """A kind of action that takes many alerts at once, and wants to hear of those that fire
    again and again."""

    max_batch: int
    """Alerts at once."""
    resend_seconds: float
    """So often it is told of all alerts that fire, though nothing has changed."""

    async def send_batch(self, action: Action, alerts: Sequence[Alert]) -> None:
        """Do it for all of them, the oldest first. Raises as Deed does.

        After a DeedError for many, they are tried in smaller numbers.
        """


class ActionError(Exception):
    """It could not be done, and will not be; the message says why and what to do."""


class RetryableError(ActionError):
    """It could not be done now, or nobody knows whether it was."""

    def __init__(self, message: str, *, retry_after_seconds: float = 0.0) -> None:
        """With how long to wait at least, if the other side says so."""
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class NotSentError(RetryableError):
    """Nobody has heard of it, for certain."""
