"""When a disk will be full, if it goes on as it did: a straight line through the last hour."""

from collections import deque

from podstatus.node.decide.readings import DiskReading

_SECOND = 1_000_000_000
_SPAN = 3600 * _SECOND
_APART = 60 * _SECOND
"""One reading a minute is kept: 60 of them."""
_LEAST = 5 * 60 * _SECOND
"""What a forecast needs: a burst of a minute is not the way it goes."""


class DiskForecast:
    """Remembers how full the disk was."""

    def __init__(self) -> None:
        self._seen: deque[tuple[int, int]] = deque()
        self._available = 0

    def read(self, disk: DiskReading, at: int) -> None:
        """It is like this now."""
        self._available = disk.available_bytes
        if self._seen and at < self._seen[-1][0]:
            # The clock was set back: what was seen before cannot be put beside it.
            self._seen.clear()
        if not self._seen or at - self._seen[-1][0] >= _APART:
            self._seen.append((at, disk.used_bytes))
        while self._seen[0][0] < at - _SPAN:
            self._seen.popleft()

    @property
    def full_in_seconds(self) -> float | None:
        """Until nothing is left; None if it is not known yet, or does not fill."""
        if not self._seen or self._seen[-1][0] - self._seen[0][0] < _LEAST:
            return None
        slope = _slope(self._seen)
        return self._available / slope if slope > 0 else None


def _slope(seen: deque[tuple[int, int]]) -> float:
    """Bytes a second, by least squares."""
    first = seen[0][0]
    points = [((at - first) / _SECOND, used) for at, used in seen]
    mean_at = sum(at for at, _ in points) / len(points)
    mean_used = sum(used for _, used in points) / len(points)
    spread = sum((at - mean_at) ** 2 for at, _ in points)
    return sum((at - mean_at) * (used - mean_used) for at, used in points) / spread
