"""An event with an optional deadline."""

import asyncio

from podstatus.base.clock import Clock


class TimedWakeup:
    """Wakes one waiter, which then checks for itself what has changed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._event = asyncio.Event()

    def wake(self) -> None:
        """Wake the waiter, now or at its next wait."""
        self._event.set()

    async def wait(self, until: int | None = None) -> None:
        """Wait until `until` (ns since the Unix epoch; None: no deadline) or until `wake` is
        called.
        """
        async with asyncio.TaskGroup() as tasks:
            timer = tasks.create_task(self._wake_at(until)) if until is not None else None
            await self._event.wait()
            if timer is not None:
                timer.cancel()
        self._event.clear()

    async def _wake_at(self, at: int) -> None:
        await self._clock.wait(max(0, at - self._clock.now()) / 1e9)
        self.wake()
