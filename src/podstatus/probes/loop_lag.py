"""Distinguish a slow container from a blocked event loop.

If the event loop was blocked past the timeout, the response and the timeout arrive together. The
result is then unknown, not a failure, so that no container is restarted for it.
"""

import asyncio
from collections.abc import Awaitable

from podstatus.base.clock import Clock
from podstatus.probes.decide.check_result import CheckError, CheckResult

MAX_LAG_SECONDS = 0.2
"""Seconds by which a timer may fire late on a busy machine."""


async def with_lag_check(check: Awaitable[CheckResult], *, seconds: float) -> CheckResult:
    """Await a check that times out after `seconds`. Raises CheckError if the loop was blocked."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    result = await check
    late = loop.time() - started - seconds
    if not result.success and late > MAX_LAG_SECONDS:
        raise loop_blocked_error(late)
    return result


class LagClock:
    """A clock that records by how much its last wait was late."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.lag_seconds = 0.0

    def now(self) -> int:
        """Wall clock of the wrapped clock, ns."""
        return self._clock.now()

    def monotonic(self) -> int:
        """Monotonic time of the wrapped clock, ns."""
        return self._clock.monotonic()

    async def wait(self, seconds: float) -> None:
        """Wait `seconds`, and set `lag_seconds`."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        await self._clock.wait(seconds)
        self.lag_seconds = loop.time() - started - seconds


def loop_blocked_error(lag_seconds: float) -> CheckError:
    """The error of a check whose timeout was noticed `lag_seconds` late."""
    return CheckError(f"the agent's event loop was blocked for {lag_seconds:.1f} s, result unknown")
