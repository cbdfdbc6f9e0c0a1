"""What a reflector has seen, as a value."""

import msgspec


class ReflectorCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What was counted until one moment."""

    lists: int = 0
    """Full lists that were taken over."""
    watches: int = 0
    """Streams that were opened."""
    events: int = 0
    """Without bookmarks."""
    bookmarks: int = 0
    duplicates: int = 0
    """Events that were no news: seen before, older than what is known, or covered by a list."""
    undecodable: int = 0
    """Objects, each time that one was met."""
    missed: int = 0
    """Changes that only a full list has shown, although the watch had come past them."""
    expired: int = 0
    """Times that the watch could not go on from where it was (410)."""
    silences: int = 0
    """Streams that were opened anew because they said nothing for too long."""
    failures: int = 0
    """Of lists and watches, attempt by attempt."""
    handler_failures: int = 0
