"""The measured usage of a node: its newest sample, and moving averages of the samples before.

    usage = MeasuredUsage().add(NodeUsageSample(at=monotonic, used={CPU: 1.5}, capacity={CPU: 4.0}))

As in Unix load averages, the weight of a sample decreases exponentially with its age, with the real
time between samples. An average starts with its first sample instead of zero: it is a mean of what
was measured, together with the time that this covers. The time of a gap is not covered.
"""

import math
from collections.abc import Mapping

import msgspec
from msgspec import structs

CPU, MEMORY, DISK, INODES, PIDS, PODS = "cpu", "memory", "disk", "inodes", "pids", "pods"
MEASURED_RESOURCES = (CPU, MEMORY, DISK, INODES, PIDS)
"""CPU in cores, memory and disk in bytes, the others are counted."""
WINDOWS = {"1m": 60.0, "5m": 300.0, "15m": 900.0}
"""Seconds of each average, by name."""
MAX_GAP_SECONDS = 60.0
"""Time between two samples that counts as measured: six periods of an agent."""
_GAP_PERIODS = 2.5
"""Of rare samples: one may be missed."""
_MIN_COVERED_SECONDS = 1.0
_COMPLETE_WEIGHT = 1 - math.exp(-1)
"""Of an average whose whole window was measured."""
_SECOND = 1_000_000_000


class NodeUsageSample(msgspec.Struct, frozen=True, kw_only=True):
    """The usage of a node at one moment; unknown amounts are missing."""

    at: int
    """Monotonic time in nanoseconds, of one clock for all samples of a node."""
    used: Mapping[str, float]
    """Amounts by resource; of CPU the mean since the sample before."""
    capacity: Mapping[str, float] = {}
    """How much of each resource can be used at most."""


class MovingAverage(msgspec.Struct, frozen=True, gc=False):
    """An exponentially weighted mean of the measured time."""

    seconds: float
    """The window: a sample of this age has 1/e of the weight of a new one."""
    weighted_sum: float = 0.0
    weight: float = 0.0
    """Weight of the measured time, from 0 to 1: all time until now."""

    def add(self, amount: float | None, seconds: float) -> "MovingAverage":
        """Return the average after `seconds` with this amount; None: it was not measured."""
        decay = math.exp(-seconds / self.seconds)
        is_measured = amount is not None
        return MovingAverage(
            self.seconds,
            self.weighted_sum * decay + (amount or 0.0) * (1 - decay),
            self.weight * decay + is_measured * (1 - decay),
        )

    @property
    def covered_seconds(self) -> float:
        """The measured part of the window; after a gap, that of the same weight without one."""
        if self.weight >= _COMPLETE_WEIGHT:
            return self.seconds
        return -self.seconds * math.log1p(-self.weight)

    @property
    def amount(self) -> float | None:
        """The mean; None if it covers less than a second."""
        if self.covered_seconds < _MIN_COVERED_SECONDS:
            return None
        return self.weighted_sum / self.weight


class MeasuredUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The newest sample of a node, and the averages until then by resource and window."""

    sample: NodeUsageSample | None = None
    averages: Mapping[str, Mapping[str, MovingAverage]] = {}
    max_gap_seconds: float = MAX_GAP_SECONDS
    """If more time passes between two samples, none of it counts as measured."""
    intervals: tuple[float, ...] = ()
    """Seconds between the newest three samples at most: one of them may be an outage."""

    @property
    def gap_seconds(self) -> float:
        """Age of the newest sample from which the current usage is unknown."""
        rare = _GAP_PERIODS * min(self.intervals, default=0.0)
        return min(self.max_gap_seconds, max(MAX_GAP_SECONDS, rare))

    def add(self, sample: NodeUsageSample) -> "MeasuredUsage":
        """Return the usage with a newer sample; one that is not newer is ignored."""
        if self.sample is not None and sample.at <= self.sample.at:
            return self
        seconds = self._seconds_since_sample(sample.at)
        # How often this node is measured is unknown until its second sample.
        is_gap = seconds > (self.gap_seconds if self.intervals else self.max_gap_seconds)
        return structs.replace(
            self,
            sample=sample,
            intervals=() if self.sample is None else (*self.intervals, seconds)[-2:],
            averages=self._averages({} if is_gap else sample.used, seconds),
        )

    def newest(self, now: int) -> NodeUsageSample | None:
        """Return the newest sample; None if there is none, or `now` is in a gap."""
        return None if self._seconds_since_sample(now) > self.gap_seconds else self.sample

    def averages_at(self, resource: str, now: int) -> Mapping[str, MovingAverage]:
        """Return the averages of a resource by window, without those that cover nothing."""
        # Until the gap is long enough to be one, the last amounts are assumed to continue.
        seconds = self._seconds_since_sample(now)
        averages = self.averages.get(resource, {})
        if seconds > self.gap_seconds:
            averages = {name: average.add(None, seconds) for name, average in averages.items()}
        return {name: it for name, it in averages.items() if it.amount is not None}

    def _averages(
        self, used: Mapping[str, float], seconds: float
    ) -> Mapping[str, Mapping[str, MovingAverage]]:
        return {
            resource: {
                name: average.add(used.get(resource), seconds)
                for name, average in self.averages.get(resource, _EMPTY_AVERAGES).items()
            }
            for resource in MEASURED_RESOURCES
        }

    def _seconds_since_sample(self, now: int) -> float:
        return 0.0 if self.sample is None else max(0, now - self.sample.at) / _SECOND


_EMPTY_AVERAGES = {name: MovingAverage(seconds) for name, seconds in WINDOWS.items()}
