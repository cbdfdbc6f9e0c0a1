"""Remember what was worked out for texts that come again and again."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

R = TypeVar("R")

MAX_CACHED_STRINGS = 4096
MAX_CACHED_LENGTH = 64
"""What comes again and again is short; a long text is worked out anew, so that nobody can
fill the memory with a few thousand texts of a megabyte each."""


def cached_for_short_strings(function: Callable[[str], R]) -> Callable[[str], R]:
    """The function, with its results for short texts kept."""
    kept = lru_cache(maxsize=MAX_CACHED_STRINGS)(function)

    @wraps(function)
    def remembering(text: str) -> R:
        return kept(text) if len(text) <= MAX_CACHED_LENGTH else function(text)

    return remembering
