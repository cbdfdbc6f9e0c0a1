"""Counters of /v1/watch and its clients."""

from enum import Enum

from podstatus.base.metric_values import CounterVec


class CloseReason(Enum):
    """Why a client of /v1/watch was disconnected."""

    SLOW = "slow"
    """It read nothing for too long."""
    LONG = "long"
    """It reached the maximum duration, after which it has to authenticate again."""
    HISTORY = "history"
    """The history cannot be read."""
    STOP = "stop"
    """The server is stopping."""


class LimitScope(Enum):
    """Which limit was reached when a client was rejected."""

    ALL = "all"
    CLIENT = "client"
    """The limit of one client."""


class WatchCounts:
    """Counters of watch clients. Updated in one event loop; readable from any thread."""

    def __init__(self) -> None:
        self.connected = 0
        self.events = 0
        """Events sent to clients."""
        self.closes = CounterVec()
        """Disconnected clients, by `CloseReason`."""
        self.rejections = CounterVec()
        """Rejected clients, by `LimitScope`."""
