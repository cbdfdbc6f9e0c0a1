"""One line of a watch."""

import msgspec

ADDED = "ADDED"
MODIFIED = "MODIFIED"
DELETED = "DELETED"
BOOKMARK = "BOOKMARK"
"""Nothing happened, up to the resource version that its object has."""
ERROR = "ERROR"
"""The object is a Status: why the watch has ended. The client raises it."""


class WatchEvent(msgspec.Struct, frozen=True):
    """What happened, and the object as the server sent it."""

    type: str
    object: bytes
    """JSON text."""
