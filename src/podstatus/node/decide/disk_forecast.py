"""When a disk will be full, if it goes on as it did: a straight line through the last hour."""

from collections import deque

from podstatus.node.decide.readings import DiskReading

_SECOND = 1_000_000_000
_WINDOW = 3600 * _SECOND
_SAMPLE_INTERVAL = 60 * _SECOND
"""One reading a minute is kept: 60 of them."""
_MIN_WINDOW = 5 * 60 * _SECOND
"""What a forecast needs: a burst of a minute is not the way it goes."""


class DiskForecast:
    """Remembers how full the disk was."""

    def __init__(self) -> None:
        self._samples: deque[tuple[int, int]] = deque()
        self._available = 0

    def add_sample(self, disk: DiskReading, at: int) -> None:
        """It is like this now."""
        self._available = disk.available_bytes
        if self._samples and at < self._samples[-1][0]:
            # The clock was set back: what was seen before cannot be put beside it.
            self._samples.clear()
        if not self._samples or at - self._samples[-1][0] >= _SAMPLE_INTERVAL:
            self._samples.append((at, disk.used_bytes))
        while self._samples[0][0] < at - _WINDOW:
            self._samples.popleft()

    @property
    def full_in_seconds(self) -> float | None:
        """Until nothing is left; None if it is not known yet, or does not fill."""
        if not self._samples or self._samples[-1][0] - self._samples[0][0] < _MIN_WINDOW:
            return None
        slope = _slope(self._samples)
        return self._available / slope if slope > 0 else None


def _slope(samples: deque[tuple[int, int]]) -> float:
    """Bytes a second, by least squares."""
    first = samples[0][0]
    points = [((at - first) / _SECOND, used) for at, used in samples]
    mean_at = sum(at for at, _ in points) / len(points)
    mean_used = sum(used for _, used in points) / len(points)
    spread = sum((at - mean_at) ** 2 for at, _ in points)
    return sum((at - mean_at) * (used - mean_used) for at, used in points) / spread
