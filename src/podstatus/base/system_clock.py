"""The clock of this machine, for services."""

import asyncio

from podstatus.base.system_time import boottime_ns, wall_clock_ns


class SystemClock:
    """The clock of this machine; implements `Clock`."""

    def now(self) -> int:
        return wall_clock_ns()

    def monotonic(self) -> int:
        return boottime_ns()

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
