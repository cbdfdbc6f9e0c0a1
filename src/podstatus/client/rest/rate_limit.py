"""How many requests a second: a bucket of tokens for each purpose."""

from podstatus.base.aio import SystemClock
from podstatus.base.clock import Clock

_SECOND = 1_000_000_000


class RateLimiter:
    """Lets `burst` requests go at once, and `qps` a second from then on, in order."""

    def __init__(self, qps: float, burst: int, clock: Clock | None = None) -> None:
        if qps <= 0 or burst < 1:
            raise ValueError(f"qps={qps}, burst={burst} lets nothing through; give more than zero")
        self._qps = qps
        self._burst = burst
        self._clock = clock or SystemClock()
        self._tokens = float(burst)
        self._filled_at = self._clock.monotonic()

    async def wait(self) -> None:
        """Come back when the next request may go."""
        seconds = self._reserve()
        if not seconds:
            return
        try:
            await self._clock.wait(seconds)
        except BaseException:
            self._tokens += 1  # not used after all
            raise

    def _reserve(self) -> float:
        """Take a token, perhaps one that is still to come: in so many seconds."""
        now = self._clock.monotonic()
        filled = (now - self._filled_at) / _SECOND * self._qps
        self._tokens = min(self._burst, self._tokens + filled) - 1
        self._filled_at = now
        return max(0.0, -self._tokens / self._qps)
