"""Histograms, and counters by label values.

The number of label values is bounded. Only one thread may write; a snapshot is a copy and can be
taken from any thread.
"""

from bisect import bisect_left
from collections.abc import Mapping
from itertools import accumulate

import msgspec

DEFAULT_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""Seconds. The defaults of Prometheus, where upstream sets no others."""


class Histogram(msgspec.Struct, frozen=True):
    """Counts of observed values, by upper bound; immutable.

    A value belongs to the first bucket whose bound it does not exceed; the last bucket has no
    bound. `counts` is per bucket; `cumulative` adds them up, as Prometheus expects.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    """One more than `bounds`."""
    sum: float = 0.0

    @classmethod
    def empty(cls, *bounds: float) -> "Histogram":
        """Return a histogram without values; `bounds` in ascending order."""
        return cls(bounds, (0,) * (len(bounds) + 1))

    @property
    def count(self) -> int:
        """Total number of observed values."""
        return sum(self.counts)

    def observe(self, value: float) -> "Histogram":
        """Return the histogram with one more value."""
        index = bisect_left(self.bounds, value)
        counts = (*self.counts[:index], self.counts[index] + 1, *self.counts[index + 1 :])
        return Histogram(self.bounds, counts, self.sum + value)

    def merge(self, other: "Histogram") -> "Histogram":
        """Return the sum of two histograms with the same bounds."""
        counts = tuple(a + b for a, b in zip(self.counts, other.counts, strict=True))
        return Histogram(self.bounds, counts, self.sum + other.sum)

    def cumulative(self) -> tuple[tuple[float, int], ...]:
        """Return (bound, number of values up to it) pairs; the last bound is infinite."""
        bounds = (*self.bounds, float("inf"))
        return tuple(zip(bounds, accumulate(self.counts), strict=True))


MAX_SERIES = 1000
"""Maximum number of series, since label values from outside must not exhaust the memory."""
OVERFLOW_LABEL_VALUE = "other"
"""Replaces every label value of further series."""

LabelValues = tuple[str, ...]
"""The values of all labels, which identify a series."""


class CounterVec:
    """A set of counters, by label values."""

    def __init__(self, *, max_series: int = MAX_SERIES) -> None:
        self._max_series = max_series
        self._counts: dict[LabelValues, int] = {}

    def inc(self, *labels: str) -> None:
        """Increment the counter of these label values."""
        if labels not in self._counts and len(self._counts) >= self._max_series:
            labels = (OVERFLOW_LABEL_VALUE,) * len(labels)
        self._counts[labels] = self._counts.get(labels, 0) + 1

    def snapshot(self) -> Mapping[LabelValues, int]:
        return dict(self._counts)


class HistogramVec:
    """A set of histograms, by label values."""

    def __init__(self, *bounds: float, max_series: int = MAX_SERIES) -> None:
        self._empty = Histogram.empty(*bounds)
        self._max_series = max_series
        self._histograms: dict[LabelValues, Histogram] = {}

    def observe(self, value: float, *labels: str) -> None:
        """Add a value to the histogram of these label values."""
        if labels not in self._histograms and len(self._histograms) >= self._max_series:
            labels = (OVERFLOW_LABEL_VALUE,) * len(labels)
        self._histograms[labels] = self._histograms.get(labels, self._empty).observe(value)

    def snapshot(self) -> Mapping[LabelValues, Histogram]:
        return dict(self._histograms)
