"""Cache the results of parsing short strings."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

R = TypeVar("R")

MAX_CACHED_STRINGS = 4096
MAX_CACHED_LENGTH = 64
"""Strings that repeat are short. Longer ones are not cached, so that a few thousand strings of a
megabyte each cannot exhaust the memory."""


def cached_for_short_strings(function: Callable[[str], R]) -> Callable[[str], R]:
    """Return the function with its results for short strings cached."""
    cached = lru_cache(maxsize=MAX_CACHED_STRINGS)(function)

    @wraps(function)
    def parse(text: str) -> R:
        return cached(text) if len(text) <= MAX_CACHED_LENGTH else function(text)

    return parse
