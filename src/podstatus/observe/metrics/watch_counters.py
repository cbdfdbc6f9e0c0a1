"""Counts those who watch, and what becomes of them."""

from enum import Enum

from podstatus.base.metrics import CounterVec


class CloseReason(Enum):
    """Why somebody who watched was cut off."""

    SLOW = "slow"
    """It took nothing for too long."""
    LONG = "long"
    """It watched for so long that it has to be asked again who it is."""
    HISTORY = "history"
    """The history cannot be read."""
    STOP = "stop"
    """The server stops."""


class LimitScope(Enum):
    """Whose places are taken when somebody is refused."""

    ALL = "all"
    CLIENT = "client"
    """Those that one client may have."""


class WatchCounts:
    """What was done for those who watch. Counted in one event loop; may be read from anywhere."""

    def __init__(self) -> None:
        self.connected = 0
        self.events = 0
        """That were sent to them."""
        self.closes = CounterVec()
        """By `CloseReason`."""
        self.rejections = CounterVec()
        """By `LimitScope`."""

    def count_close(self, reason: CloseReason) -> None:
        """Somebody was cut off."""
        self.closes.inc(reason.value)

    def count_rejection(self, scope: LimitScope) -> None:
        """Somebody was not let in."""
        self.rejections.inc(scope.value)
