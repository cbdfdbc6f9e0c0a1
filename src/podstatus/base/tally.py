"""Counts by kind, for those who count while they work; bounded, and cheap to look at.

One thread counts; a look is a copy, and may be taken from anywhere.
"""

from collections.abc import Mapping

from podstatus.base.histogram import Histogram

MOST_KINDS = 1000
"""Kinds that are told apart: nothing that others make up may fill the memory."""
OTHER = "other"
"""What the kinds beyond that are called, in each of their words."""

Kind = tuple[str, ...]
"""The words that tell one kind from another."""


class Tally:
    """How often something happened."""

    def __init__(self, *, most: int = MOST_KINDS) -> None:
        self._most = most
        self._counts: dict[Kind, int] = {}

    def add(self, *kind: str) -> None:
        """Once more."""
        if kind not in self._counts and len(self._counts) >= self._most:
            kind = (OTHER,) * len(kind)
        self._counts[kind] = self._counts.get(kind, 0) + 1

    def look(self) -> Mapping[Kind, int]:
        """All counts at this moment."""
        return dict(self._counts)


class Spread:
    """How values were spread."""

    def __init__(self, *bounds: float, most: int = MOST_KINDS) -> None:
        self._empty = Histogram.empty(*bounds)
        self._most = most
        self._spreads: dict[Kind, Histogram] = {}

    def add(self, value: float, *kind: str) -> None:
        """One value more."""
        if kind not in self._spreads and len(self._spreads) >= self._most:
            kind = (OTHER,) * len(kind)
        self._spreads[kind] = self._spreads.get(kind, self._empty).observed(value)

    def look(self) -> Mapping[Kind, Histogram]:
        """All of them at this moment."""
        return dict(self._spreads)
