"""An event with an optional deadline."""

import asyncio

from podstatus.base.clock import Clock
from podstatus.base.timeouts import wait_event_or_timeout


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
        seconds = None if until is None else (until - self._clock.now()) / 1e9
        await wait_event_or_timeout(self._event, self._clock, seconds)
        self._event.clear()
