"""A thread-safe, coalescing wake-up of one asyncio task."""

import asyncio
from collections import deque
from typing import Generic, TypeVar

Reason = TypeVar("Reason")


class WakeUp(Generic[Reason]):
    """Wakes a single waiting task; calls before the task runs are coalesced.

    `set` may be called from any thread. There is no lock: a caller adds its reason before it checks
    for a waiter, and the waiter registers before it checks for reasons, so at least one of the two
    sees the other. Only the waiter unregisters itself; waking it twice is harmless. A reason that
    is already pending needs no second wake-up: the caller that added it wakes the waiter, which
    drains the reasons before it reads any state that callers changed until then.
    """

    def __init__(self) -> None:
        self._reasons: deque[Reason] = deque()
        self._waiter: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    def set(self, reason: Reason) -> None:
        """Add a reason and wake the waiter, now or at its next `wait`."""
        if reason in self._reasons:
            return
        self._reasons.append(reason)
        waiter = self._waiter
        if waiter is None:
            return
        loop, event = waiter
        try:
            loop.call_soon_threadsafe(event.set)
        except RuntimeError:
            # The event loop was closed; the reason stays for the next waiter.
            return

    async def wait(self) -> frozenset[Reason]:
        """Wait for at least one reason; return and clear all reasons."""
        event = asyncio.Event()
        self._waiter = asyncio.get_running_loop(), event
        try:
            if not self._reasons:
                await event.wait()
        finally:
            self._waiter = None
        return self.drain()

    def drain(self) -> frozenset[Reason]:
        """Return and clear all reasons without waiting."""
        reasons = set()
        while self._reasons:
            reasons.add(self._reasons.popleft())
        return frozenset(reasons)

    def discard(self, reason: Reason) -> bool:
        """Remove a reason; return whether it was pending."""
        try:
            self._reasons.remove(reason)
        except ValueError:
            return False
        return True
