"""Whether a check was too late because of the container, or because of the agent.

A loop that is held up for a second finds the answer of a container and the end of its patience at
the same time. Who looks too late has seen nothing: no container is restarted for that.
"""

import asyncio
from collections.abc import Awaitable

from podstatus.base.clock import Clock
from podstatus.probes.check_result import CheckError, CheckResult

MAX_LAG_SECONDS = 0.2
"""By which a timer may go off too late on a machine that is busy."""


async def with_lag_check(check: Awaitable[CheckResult], *, seconds: float) -> CheckResult:
    """What a check comes to that takes no longer than this. Raises CannotCheckError."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    checked = await check
    late = loop.time() - began - seconds
    if not checked.success and late > MAX_LAG_SECONDS:
        raise loop_blocked_error(late)
    return checked


class LagClock:
    """A clock that remembers by how much the latest wait was too long."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.lag_seconds = 0.0

    def now(self) -> int:
        """That of the clock."""
        return self._clock.now()

    def monotonic(self) -> int:
        """That of the clock."""
        return self._clock.monotonic()

    async def wait(self, seconds: float) -> None:
        """Come back after so many seconds."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        await self._clock.wait(seconds)
        self.lag_seconds = loop.time() - began - seconds


def loop_blocked_error(lag_seconds: float) -> CheckError:
    """What is said of a check that was looked at so many seconds too late."""
    return CheckError(f"the agent was held up for {lag_seconds:.1f} s, nothing is known")
