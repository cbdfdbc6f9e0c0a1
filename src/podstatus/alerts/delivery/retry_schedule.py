"""When a receiver is tried again after failures: what failed waits longer and longer, news do not.

Nobody knows whether a failure is about the receiver or about that one alert. So an alert that has
not been tried yet may be tried while others wait, though not more than one in a second; unless
the receiver itself has said how long it wants to be left alone.
"""

from podstatus.base.backoff import Backoff

_SECOND = 1_000_000_000


class Pace:
    """The pace of one receiver. All times are nanoseconds of one clock that is never set back."""

    def __init__(self, *, first_seconds: float, most_seconds: float) -> None:
        self._gap = int(first_seconds * _SECOND)
        self._backoff = Backoff(
            initial_seconds=min(first_seconds, most_seconds), max_seconds=most_seconds
        )
        self._due = 0
        self._news_due = 0

    def failed(self, now: int, chance: float, after_seconds: float) -> None:
        """A try failed; the receiver wants to be left alone for so long.

        One that was made for news puts off nothing else.
        """
        alone = now + int(after_seconds * _SECOND)
        if self.is_due(now):
            self._backoff = self._backoff.failed()
            self._due = now + int(self._backoff.delay(chance) * _SECOND)
        self._due = max(self._due, alone)
        self._news_due = min(self._due, max(now + self._gap, alone))

    def succeeded(self, now: int, *, is_clear: bool) -> None:
        """A try went well; whether nothing that had failed is left."""
        self._backoff = self._backoff.reset()
        self._news_due = 0
        if is_clear:
            self._due = 0
        else:
            self._backoff = self._backoff.failed()
            self._due = min(self._due, now + self._gap)

    def is_due(self, now: int) -> bool:
        """Whether what failed may be tried again."""
        return now >= self._due

    def seconds(self, now: int) -> float:
        """Until what failed may be tried again."""
        return max(0, self._due - now) / _SECOND

    def news_seconds(self, now: int) -> float:
        """Until anything may be tried."""
        return max(0, self._news_due - now) / _SECOND
