"""Bounds log records that clients can cause: one short line per message and minute."""

import logging

from podstatus.base.clock import Clock
from podstatus.base.token_bucket import TokenBucket

_MINUTE = 60 * 10**9
_MAX_MESSAGES = 100
"""Number of distinct messages; they are constants in the code, so there are few."""
_MAX_TEXT = 500


class LogRateLimiter:
    """Allows each message once per minute. Not thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buckets: dict[str, TokenBucket] = {}
        self._dropped: dict[str, int] = {}

    def allow(self, message: str) -> bool:
        """Return whether this message may be logged now."""
        if message not in self._buckets and len(self._buckets) >= _MAX_MESSAGES:
            return False
        bucket = self._buckets.get(message) or TokenBucket(burst=1, interval_ns=_MINUTE)
        self._buckets[message], allowed = bucket.try_acquire(self._clock.monotonic())
        if not allowed:
            self._dropped[message] = self._dropped.get(message, 0) + 1
        return allowed

    def pop_dropped(self, message: str) -> int:
        """Return and reset the number of suppressed records of this message."""
        return self._dropped.pop(message, 0)


class RateLimitFilter(logging.Filter):
    """A filter for third-party loggers that limits the rate and removes what a client sent.

    Only the type of an exception is logged: its text and traceback may contain data of a client,
    such as a token or terminal control sequences.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._limiter = LogRateLimiter(clock)

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log the record, which is reduced to one line."""
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
