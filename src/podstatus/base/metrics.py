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

    def observe(self, value: float) -> "Histogram":
        """With one value more."""
        at = bisect_left(self.bounds, value)
        counts = (*self.counts[:at], self.counts[at] + 1, *self.counts[at + 1 :])
        return Histogram(self.bounds, counts, self.sum + value)

    def merge(self, other: "Histogram") -> "Histogram":
        """With all values of another one, which has the same bounds."""
        counts = tuple(
            mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)
        )
        return Histogram(self.bounds, counts, self.sum + other.sum)

    def cumulative(self) -> tuple[tuple[float, int], ...]:
        """How many values did not exceed each bound; the last bound is infinite."""
        bounds = (*self.bounds, float("inf"))
        return tuple(zip(bounds, accumulate(self.counts), strict=True))


MAX_SERIES = 1000
"""Kinds that are told apart: nothing that others make up may fill the memory."""
OVERFLOW_LABEL_VALUE = "other"
"""What the kinds beyond that are called, in each of their words."""

LabelValues = tuple[str, ...]
"""The words that tell one kind from another."""


class CounterVec:
    """How often something happened."""

    def __init__(self, *, max_series: int = MAX_SERIES) -> None:
        self._max_series = max_series
        self._counts: dict[LabelValues, int] = {}

    def inc(self, *kind: str) -> None:
        """Once more."""
        if kind not in self._counts and len(self._counts) >= self._max_series:
            kind = (OVERFLOW_LABEL_VALUE,) * len(kind)
        self._counts[kind] = self._counts.get(kind, 0) + 1

    def snapshot(self) -> Mapping[LabelValues, int]:
        """All counts at this moment."""
        return dict(self._counts)


class HistogramVec:
    """How values were spread."""

    def __init__(self, *bounds: float, max_series: int = MAX_SERIES) -> None:
        self._empty = Histogram.empty(*bounds)
        self._max_series = max_series
        self._histograms: dict[LabelValues, Histogram] = {}

    def observe(self, value: float, *kind: str) -> None:
        """One value more."""
        if kind not in self._histograms and len(self._histograms) >= self._max_series:
            kind = (OVERFLOW_LABEL_VALUE,) * len(kind)
        self._histograms[kind] = self._histograms.get(kind, self._empty).observe(value)

    def snapshot(self) -> Mapping[LabelValues, Histogram]:
        """All of them at this moment."""
        return dict(self._histograms)
