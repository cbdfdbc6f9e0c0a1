"""The asyncio parts: the system clock, a thread-safe wake-up, and timeouts on a clock."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from podstatus.base.clock import Clock

_MAX_WALL_CLOCK_NS = 8_204_889_600_000_000_000
"""2230-01-01: leaves 30 years before nanoseconds overflow 64 bits. The kernel accepts no time after
2232."""

Reason = TypeVar("Reason")
Result = TypeVar("Result")


class SystemClock:
    """The clock of this machine; implements `Clock`."""

    def now(self) -> int:
        """Return the wall-clock time in nanoseconds since the Unix epoch."""
        return wall_clock_ns()

    def monotonic(self) -> int:
        """Return the monotonic time in nanoseconds since an arbitrary start."""
        return boottime_ns()

    async def wait(self, seconds: float) -> None:
        """Sleep for this many seconds."""
        await asyncio.sleep(seconds)


def wall_clock_ns() -> int:
    """Return the wall-clock time in nanoseconds since the Unix epoch, from 1970 to 2262.

    Python's limit is 2262; files, certificates and databases have limits of their own. If the
    system clock is out of range, as LD_PRELOAD libraries can cause, time continues from the
    nearest safe value.
    """
    return _clamped_ns(time.time_ns)


def _clamped_ns(read: Callable[[], int]) -> int:
    try:
        now = read()
    except OverflowError:
        now = _MAX_WALL_CLOCK_NS
    if now >= _MAX_WALL_CLOCK_NS:
        return _MAX_WALL_CLOCK_NS + boottime_ns()
    return now if now >= 0 else boottime_ns()


def guard_time_module() -> None:
    """Make `time.time` and `time.time_ns` of this process return the time of `wall_clock_ns`.

    For programs: after 2262, both raise OverflowError in every log call and HTTP request.
    """
    read = time.time_ns

    def time_ns() -> int:
        return _clamped_ns(read)

    time.time_ns = time_ns
    time.time = lambda: time_ns() / 1e9


def boottime_ns() -> int:
    """Return the monotonic time in nanoseconds since an arbitrary start.

    Includes the time that the machine was suspended, if the platform has CLOCK_BOOTTIME (Linux).
    """
    boot_time = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic_ns() if boot_time is None else time.clock_gettime_ns(boot_time)


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


async def wait_event_or_timeout(event: asyncio.Event, clock: Clock, seconds: float | None) -> None:
    """Return when the event is set, or after `seconds` on this clock; None means no timeout."""
    if seconds is None or event.is_set():
        await event.wait()
        return
    if seconds <= 0:
        return
    event_task = asyncio.ensure_future(event.wait())
    timeout_task = asyncio.ensure_future(clock.wait(seconds))
    try:
        await asyncio.wait((event_task, timeout_task), return_when=asyncio.FIRST_COMPLETED)
    finally:
        event_task.cancel()
        timeout_task.cancel()


async def run_with_timeout(
    seconds: float | None, clock: Clock, work: Coroutine[Any, Any, Result]
) -> Result:
    """Return the result of `work`; None means no timeout.

    Raises TimeoutError after `seconds` on this clock, once the work was cancelled and has ended.
    """
    if seconds is None:
        return await work
    work_task = asyncio.ensure_future(work)
    timeout_task = asyncio.ensure_future(clock.wait(seconds))
    try:
        await asyncio.wait((work_task, timeout_task), return_when=asyncio.FIRST_COMPLETED)
        if not work_task.done():
            raise TimeoutError
        return work_task.result()
    finally:
        timeout_task.cancel()
        work_task.cancel()
        await asyncio.wait((work_task, timeout_task))
        if not work_task.cancelled():
            work_task.exception()  # mark an exception raised during cancellation as retrieved
