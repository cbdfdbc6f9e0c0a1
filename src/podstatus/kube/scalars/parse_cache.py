"""Remember what was worked out for texts that come again and again."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

R = TypeVar("R")

MOST_TEXTS = 4096
LONGEST_TEXT = 64
"""What comes again and again is short; a long text is worked out anew, so that nobody can
fill the memory with a few thousand texts of a megabyte each."""


def remembered(function: Callable[[str], R]) -> Callable[[str], R]:
    """The function, with its results for short texts kept."""
    kept = lru_cache(maxsize=MOST_TEXTS)(function)

    @wraps(function)
    def remembering(text: str) -> R:
        return kept(text) if len(text) <= LONGEST_TEXT else function(text)

    return remembering
