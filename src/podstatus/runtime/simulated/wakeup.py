"""Wait for a moment, or for somebody who has something new."""

import asyncio

from podstatus.base.clock import Clock


class TimedWakeup:
    """For one waiter; it looks for itself what there is when it comes back."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._event = asyncio.Event()

    def wake(self) -> None:
        """Let the waiter come back, now or as soon as it waits."""
        self._event.set()

    async def wait(self, until: int | None = None) -> None:
        """Come back at this time, in nanoseconds since the Unix epoch, or when it rings."""
        async with asyncio.TaskGroup() as tasks:
            timer = tasks.create_task(self._wake_at(until)) if until is not None else None
            await self._event.wait()
            if timer is not None:
                timer.cancel()
        self._event.clear()

    async def _wake_at(self, at: int) -> None:
        await self._clock.wait(max(0, at - self._clock.now()) / 1e9)
        self.wake()
