"""A rate limiter that waits for the tokens of a token bucket."""

from podstatus.base.clock import Clock
from podstatus.base.system_clock import SystemClock
from podstatus.base.token_bucket import TokenBucket


class RateLimiter:
    """Allows `burst` requests immediately, then `qps` per second, in order. For one event loop."""

    def __init__(self, qps: float, burst: int, clock: Clock | None = None) -> None:
        self._bucket = TokenBucket.per_second(qps, burst)
        self._clock = clock or SystemClock()

    async def wait(self) -> None:
        """Wait until the next request is allowed."""
        self._bucket, seconds = self._bucket.reserve(self._clock.monotonic())
        if not seconds:
            return
        try:
            await self._clock.wait(seconds)
        except BaseException:
            self._bucket = self._bucket.release()  # cancelled, the token was not used
            raise
