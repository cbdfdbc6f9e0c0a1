"""Whether a check was too late because of the container, or because of the agent.

A loop that is held up for a second finds the answer of a container and the end of its patience at
the same time. Who looks too late has seen nothing: no container is restarted for that.
"""

import asyncio
from collections.abc import Awaitable

from podstatus.base.clock import Clock
from podstatus.probes.check_result import CannotCheckError, Checked

LATE_SECONDS = 0.2
"""By which a timer may go off too late on a machine that is busy."""


async def punctual(check: Awaitable[Checked], *, seconds: float) -> Checked:
    """What a check comes to that takes no longer than this. Raises CannotCheckError."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    checked = await check
    late = loop.time() - began - seconds
    if not checked.success and late > LATE_SECONDS:
        raise held_up(late)
    return checked


class PunctualClock:
    """A clock that remembers by how much the latest wait was too long."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.late = 0.0

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
        self.late = loop.time() - began - seconds


def held_up(late: float) -> CannotCheckError:
    """What is said of a check that was looked at so many seconds too late."""
    return CannotCheckError(f"the agent was held up for {late:.1f} s, nothing is known")
