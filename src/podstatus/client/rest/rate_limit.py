"""Client-side rate limit of requests: a token bucket."""

from podstatus.base.clock import Clock
from podstatus.base.system_clock import SystemClock

_SECOND = 1_000_000_000


class RateLimiter:
    """Allows `burst` requests immediately, then `qps` per second, in order. For one event loop."""

    def __init__(self, qps: float, burst: int, clock: Clock | None = None) -> None:
        if qps <= 0 or burst < 1:
            raise ValueError(f"qps={qps}, burst={burst}: qps must be more than 0, burst at least 1")
        self._qps = qps
        self._burst = burst
        self._clock = clock or SystemClock()
        self._tokens = float(burst)
        self._filled_at = self._clock.monotonic()

    async def wait(self) -> None:
        """Wait until the next request is allowed."""
        seconds = self._reserve()
        if not seconds:
            return
        try:
            await self._clock.wait(seconds)
        except BaseException:
            self._tokens += 1  # cancelled, the token was not used
            raise

    def _reserve(self) -> float:
        """Take a token, possibly a future one; return the seconds until it is available."""
        now = self._clock.monotonic()
        filled = (now - self._filled_at) / _SECOND * self._qps
        self._tokens = min(self._burst, self._tokens + filled) - 1
        self._filled_at = now
        return max(0.0, -self._tokens / self._qps)
