"""Delivery counts of events, as a value."""

from collections.abc import Mapping
from enum import Enum

import msgspec


class DropReason(Enum):
    """Why an event was not delivered; the values are the keys of `EventCounts.dropped`."""

    QUEUE_FULL = "queue_full"
    """The queue was full."""
    SPAM = "spam"
    """Over the rate limit of its object; the next event that is sent includes it in its count."""
    NAMESPACE_GONE = "namespace_gone"
    """The namespace of the involved object does not exist or is terminating."""
    REJECTED = "rejected"
    """The server rejected the event permanently."""
    UNDELIVERED = "undelivered"
    """The server could not be reached within the maximum number of tries."""
    STOPPED = "stopped"
    """The recorder was closed first."""
    BROKEN = "broken"
    """A bug: an invalid object reference, or a sink that raised an unexpected exception."""


class EventCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Delivery counts of a recorder since it was created."""

    recorded: int = 0
    sent: int = 0
    """Events created at the server."""
    patched: int = 0
    """Repeats added to the count of an existing event."""
    dropped: Mapping[str, int] = {}
    """Dropped events by reason, a value of `DropReason`."""

    @property
    def waiting(self) -> int:
        """Number of events that are queued or being sent."""
        return self.recorded - self.sent - self.patched - sum(self.dropped.values())
