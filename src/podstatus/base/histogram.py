"""How values are spread, as a value: counts per bucket, their number and their sum."""

from bisect import bisect_left
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
