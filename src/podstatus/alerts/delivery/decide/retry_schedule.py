"""When a receiver is tried again: failed alerts back off exponentially, new ones do not.

A failure may be caused by the receiver or by that one alert. So an alert that has not been tried
yet may be sent while others back off, at most one per second, unless the receiver sent Retry-After.
"""

from podstatus.base.backoff import Backoff

_SECOND = 1_000_000_000


class RetrySchedule:
    """Retry times of one receiver. All times are monotonic nanoseconds."""

    def __init__(self, *, first_seconds: float, max_seconds: float) -> None:
        self._min_gap = int(first_seconds * _SECOND)
        self._backoff = Backoff(
            initial_seconds=min(first_seconds, max_seconds), max_seconds=max_seconds
        )
        self._retry_due = 0
        self._new_due = 0

    def failed(self, now: int, random: float, retry_after_seconds: float) -> None:
        """Record a failed attempt; `retry_after_seconds` is the wait that the receiver requested.

        An attempt for a new alert does not delay the retry of failed ones.
        """
        earliest = now + int(retry_after_seconds * _SECOND)
        if self.is_due(now):
            self._backoff = self._backoff.failed()
            self._retry_due = now + int(self._backoff.delay(random) * _SECOND)
        self._retry_due = max(self._retry_due, earliest)
        self._new_due = min(self._retry_due, max(now + self._min_gap, earliest))

    def succeeded(self, now: int, *, is_clear: bool) -> None:
        """Record a success; `is_clear`: no failed alert is left."""
        self._backoff = self._backoff.reset()
        self._new_due = 0
        if is_clear:
            self._retry_due = 0
        else:
            self._backoff = self._backoff.failed()
            self._retry_due = min(self._retry_due, now + self._min_gap)

    def is_due(self, now: int) -> bool:
        """True if failed alerts may be retried."""
        return now >= self._retry_due

    def seconds_until_retry(self, now: int) -> float:
        return max(0, self._retry_due - now) / _SECOND

    def seconds_until_new(self, now: int) -> float:
        return max(0, self._new_due - now) / _SECOND
