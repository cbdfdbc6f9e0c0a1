"""Forecast of when the disk is full: linear regression over the last hour."""

from collections import deque

from podstatus.node.decide.readings import DiskReading

_SECOND = 1_000_000_000
_WINDOW = 3600 * _SECOND
_SAMPLE_INTERVAL = 60 * _SECOND
"""One sample per minute, so at most 60 are kept."""
_MIN_WINDOW = 5 * 60 * _SECOND
"""Minimum span of samples: a burst of one minute is not a trend."""


class DiskForecast:
    """Keeps samples of the disk usage."""

    def __init__(self) -> None:
        self._samples: deque[tuple[int, int]] = deque()
        self._available = 0

    def add_sample(self, disk: DiskReading, at: int) -> None:
        """Add a reading taken at `at`, monotonic ns."""
        self._available = disk.available_bytes
        if not self._samples or at - self._samples[-1][0] >= _SAMPLE_INTERVAL:
            self._samples.append((at, disk.used_bytes))
        while self._samples[0][0] < at - _WINDOW:
            self._samples.popleft()

    @property
    def full_in_seconds(self) -> float | None:
        """Seconds until the disk is full; None if unknown yet or not filling."""
        if not self._samples or self._samples[-1][0] - self._samples[0][0] < _MIN_WINDOW:
            return None
        slope = _slope(self._samples)
        return self._available / slope if slope > 0 else None


def _slope(samples: deque[tuple[int, int]]) -> float:
    """Growth in bytes per second, by least squares."""
    first = samples[0][0]
    points = [((at - first) / _SECOND, used) for at, used in samples]
    mean_at = sum(at for at, _ in points) / len(points)
    mean_used = sum(used for _, used in points) / len(points)
    spread = sum((at - mean_at) ** 2 for at, _ in points)
    return sum((at - mean_at) * (used - mean_used) for at, used in points) / spread
