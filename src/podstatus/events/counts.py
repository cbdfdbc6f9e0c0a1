"""What became of events, as a value."""

from collections.abc import Mapping
from enum import Enum

import msgspec


class DropReason(Enum):
    """Why an event did not arrive; counted under these names."""

    QUEUE_FULL = "queue_full"
    """Too many were waiting."""
    SPAM = "spam"
    """Too many about one object. The next that goes through carries the count of these."""
    NAMESPACE_GONE = "namespace_gone"
    """The namespace of its object is gone, or going."""
    REJECTED = "rejected"
    """The server did not want it."""
    UNDELIVERED = "undelivered"
    """The server could not be reached, however often it was tried."""
    STOPPED = "stopped"
    """The recorder came to its end first."""
    BROKEN = "broken"
    """Something on our side: a reference that is none, a sink that raised what it should not."""


class EventCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the events of a recorder so far; the rest is still waiting."""

    recorded: int = 0
    sent: int = 0
    """Created at the server."""
    patched: int = 0
    """Repeats that were added to the count of an event."""
    dropped: Mapping[str, int] = {}
    """By cause: a value of `DropReason`."""

    @property
    def waiting(self) -> int:
        """How many have not come to their end."""
        return self.recorded - self.sent - self.patched - sum(self.dropped.values())
