"""Histograms, and counters by label values.

The number of label values is bounded. One thread counts; a snapshot is a copy and can be taken from
any thread.
"""

from bisect import bisect_left
from collections.abc import Mapping
from itertools import accumulate

import msgspec


class Histogram(msgspec.Struct, frozen=True):
    """Counts of what was observed, by upper bound.

    A value belongs to the first bucket whose bound it does not exceed; the last bucket has no
    bound. `counts` tells the buckets apart; `cumulative` adds them up as Prometheus wants them.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    """One more than there are bounds."""
    sum: float = 0.0

    @classmethod
    def empty(cls, *bounds: float) -> "Histogram":
        """Nothing observed yet; the bounds in ascending order."""
        return cls(bounds, (0,) * (len(bounds) + 1))

    @property
    def count(self) -> int:
        """How many values were observed."""
        return sum(self.counts)

    def observed(self, value: float) -> "Histogram":
        """With one value more."""
        at = bisect_left(self.bounds, value)
        counts = (*self.counts[:at], self.counts[at] + 1, *self.counts[at + 1 :])
        return Histogram(self.bounds, counts, self.sum + value)

    def added(self, other: "Histogram") -> "Histogram":
        """With all values of another one, which has the same bounds."""
        counts = tuple(
            mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)
        )
        return Histogram(self.bounds, counts, self.sum + other.sum)

    def cumulative(self) -> tuple[tuple[float, int], ...]:
        """How many values did not exceed each bound; the last bound is infinite."""
        bounds = (*self.bounds, float("inf"))
        return tuple(zip(bounds, accumulate(self.counts), strict=True))


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
