"""Log records that clients can cause: one line each, bounded, and one of a kind per minute."""

import logging
from collections.abc import Callable

from podstatus.base.aio import boottime_ns
from podstatus.base.token_bucket import TokenBucket

_MINUTE = 60 * 10**9
_MAX_MESSAGES = 100
"""Distinct messages; they are constants, so there are few."""
_MAX_TEXT = 500


class LogRateLimiter:
    """Which messages may be logged: each once per minute."""

    def __init__(self, monotonic: Callable[[], int] = boottime_ns) -> None:
        """`monotonic`: nanoseconds of a monotonic clock."""
        self._monotonic = monotonic
        self._buckets: dict[str, TokenBucket] = {}
        self._dropped: dict[str, int] = {}

    def allow(self, message: str) -> bool:
        """Whether this message may be logged now."""
        if message not in self._buckets and len(self._buckets) >= _MAX_MESSAGES:
            return False
        bucket = self._buckets.get(message) or TokenBucket(burst=1, interval_ns=_MINUTE)
        self._buckets[message], allowed = bucket.try_acquire(self._monotonic())
        if not allowed:
            self._dropped[message] = self._dropped.get(message, 0) + 1
        return allowed

    def pop_dropped(self, message: str) -> int:
        """How often it was not logged since the last time."""
        return self._dropped.pop(message, 0)


class RateLimitFilter(logging.Filter):
    """A filter for loggers of others: lines at a bounded rate, without what a client sent.

    Of an exception only the type is logged: its text and its traceback may hold what a client
    sent, and so a token, or sequences that a terminal obeys.
    """

    def __init__(self, monotonic: Callable[[], int] = boottime_ns) -> None:
        super().__init__()
        self._limiter = LogRateLimiter(monotonic)

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is logged; it becomes one line."""
        message = str(record.msg)
        if not self._limiter.allow(message):
            return False
        fields = {}
        if record.exc_info and record.exc_info[0] is not None:
            fields["error"] = record.exc_info[0].__name__
        if dropped := self._limiter.pop_dropped(message):
            fields["dropped"] = str(dropped)
        text = record.getMessage().partition("\n")[0][:_MAX_TEXT].replace("%", "%%")
        record.msg = ": ".join((text, " ".join(f"{key}=%s" for key in fields))) if fields else text
        record.args = tuple(fields.values())
        record.exc_info = None
        return True
