"""Wait for a moment, or for somebody who has something new."""

import asyncio

from podstatus.base.clock import Clock


class Alarm:
    """For one waiter; it looks for itself what there is when it comes back."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Let the waiter come back, now or as soon as it waits."""
        self._rung.set()

    async def wait(self, until: int | None = None) -> None:
        """Come back at this time, in nanoseconds since the Unix epoch, or when it rings."""
        async with asyncio.TaskGroup() as tasks:
            timer = tasks.create_task(self._ring_at(until)) if until is not None else None
            await self._rung.wait()
            if timer is not None:
                timer.cancel()
        self._rung.clear()

    async def _ring_at(self, moment: int) -> None:
        await self._clock.wait(max(0, moment - self._clock.now()) / 1e9)
        self.ring()
