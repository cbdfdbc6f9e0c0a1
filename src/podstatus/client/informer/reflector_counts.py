"""The counters of a reflector."""

import msgspec


class ReflectorCounts(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot of a reflector's counters."""

    lists: int = 0
    """Full lists that were applied."""
    watches: int = 0
    """Watch streams that were opened."""
    events: int = 0
    """Watch events without bookmarks."""
    bookmarks: int = 0
    duplicates: int = 0
    """Events without news: seen before, older than the copy, or covered by a list."""
    undecodable: int = 0
    """Objects that could not be decoded; each occurrence counts."""
    missed: int = 0
    """Changes that only a full list has shown after the watch had passed their version."""
    expired: int = 0
    """Watches whose start version had expired (410)."""
    silences: int = 0
    """Watch streams that were reopened after the idle timeout."""
    failures: int = 0
    """Failed attempts to list or watch."""
    handler_failures: int = 0
