"""When a receiver is tried again after failures: what failed waits longer and longer, news do not.

Nobody knows whether a failure is about the receiver or about that one alert. So an alert that has
not been tried yet may be tried while others wait, though not more than one in a second; unless
the receiver itself has said how long it wants to be left alone.
"""

from podstatus.base.backoff import Backoff

_SECOND = 1_000_000_000


class RetrySchedule:
    """The pace of one receiver. All times are nanoseconds of one clock that is never set back."""

    def __init__(self, *, first_seconds: float, max_seconds: float) -> None:
        self._min_gap = int(first_seconds * _SECOND)
        self._backoff = Backoff(
            initial_seconds=min(first_seconds, max_seconds), max_seconds=max_seconds
        )
        self._retry_due = 0
        self._new_due = 0

    def failed(self, now: int, random: float, retry_after_seconds: float) -> None:
        """A try failed; the receiver wants to be left alone for so long.

        One that was made for news puts off nothing else.
        """
        alone = now + int(retry_after_seconds * _SECOND)
        if self.is_due(now):
            self._backoff = self._backoff.failed()
            self._retry_due = now + int(self._backoff.delay(random) * _SECOND)
        self._retry_due = max(self._retry_due, alone)
        self._new_due = min(self._retry_due, max(now + self._min_gap, alone))

    def succeeded(self, now: int, *, is_clear: bool) -> None:
        """A try went well; whether nothing that had failed is left."""
        self._backoff = self._backoff.reset()
        self._new_due = 0
        if is_clear:
            self._retry_due = 0
        else:
            self._backoff = self._backoff.failed()
            self._retry_due = min(self._retry_due, now + self._min_gap)

    def is_due(self, now: int) -> bool:
        """Whether what failed may be tried again."""
        return now >= self._retry_due

    def seconds_until_retry(self, now: int) -> float:
        """Until what failed may be tried again."""
        return max(0, self._retry_due - now) / _SECOND

    def seconds_until_new(self, now: int) -> float:
        """Until anything may be tried."""
        return max(0, self._new_due - now) / _SECOND
