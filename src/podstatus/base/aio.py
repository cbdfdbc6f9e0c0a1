"""The asyncio parts: the real clocks and a wake-up that crosses threads."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from podstatus.base.clock import Clock

_MAX_WALL_CLOCK_NS = 8_204_889_600_000_000_000
"""2230-01-01: later times have 30 years of room before they do not fit in 64 bits. The kernel takes
no time after 2232."""

Reason = TypeVar("Reason")
Result = TypeVar("Result")


class SystemClock:
    """The clock of this machine."""

    def now(self) -> int:
        """Wall-clock time in nanoseconds since the Unix epoch."""
        return wall_clock_ns()

    def monotonic(self) -> int:
        """Nanoseconds of the monotonic clock, since some moment before."""
        return boottime_ns()

    async def wait(self, seconds: float) -> None:
        """Come back after so many seconds."""
        await asyncio.sleep(seconds)


def wall_clock_ns() -> int:
    """Wall-clock time in nanoseconds since the Unix epoch, from 1970 to 2262.

    Python counts up to 2262, and files, certificates and databases have limits of their own. A
    clock that shows another time, as LD_PRELOAD libraries can make it, counts as one that shows the
    nearest safe time, and goes on from there.
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
    """Have `time.time` and `time.time_ns` of this process show what `wall_clock_ns` does.

    For programs: after 2262 they raise OverflowError out of every log line and HTTP request.
    """
    read = time.time_ns

    def time_ns() -> int:
        return _clamped_ns(read)

    time.time_ns = time_ns
    time.time = lambda: time_ns() / 1e9


def boottime_ns() -> int:
    """Nanoseconds of a clock that nobody sets, since some moment before.

    Time that the machine slept counts where the system can tell, as Linux can.
    """
    boot_time = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic_ns() if boot_time is None else time.clock_gettime_ns(boot_time)


class WakeUp(Generic[Reason]):
    """Wakes the one task that waits for it; many calls before it looks count as one.

    `call` may be used from any thread. There is no lock: a caller adds its reason before
    it looks for a waiter, and the waiter is there before it looks for reasons, so one of
    the two always sees the other. Only the waiter takes itself away; waking it twice does
    no harm. A reason that is there already needs no second wake-up: whoever added it wakes the
    waiter, who takes it before it looks at what the callers have done until then.
    """

    def __init__(self) -> None:
        self._reasons: deque[Reason] = deque()
        self._waiter: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    def set(self, reason: Reason) -> None:
        """Give the waiter a reason to wake up, now or when it waits next."""
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
            # The loop ended meanwhile; the reason stays for the next one.
            return

    async def wait(self) -> frozenset[Reason]:
        """All reasons since the last time, as soon as there is one."""
        event = asyncio.Event()
        self._waiter = asyncio.get_running_loop(), event
        try:
            if not self._reasons:
                await event.wait()
        finally:
            self._waiter = None
        return self.drain()

    def drain(self) -> frozenset[Reason]:
        """All reasons since the last time, without waiting."""
        taken = set()
        while self._reasons:
            taken.add(self._reasons.popleft())
        return frozenset(taken)

    def discard(self, reason: Reason) -> bool:
        """Whether this was a reason since the last time; the others stay."""
        try:
            self._reasons.remove(reason)
        except ValueError:
            return False
        return True


async def wait_event_or_timeout(event: asyncio.Event, clock: Clock, seconds: float | None) -> None:
    """Come back when the event is set, or after so many seconds of this clock; None: never."""
    if seconds is None or event.is_set():
        await event.wait()
        return
    if seconds <= 0:
        return
    set_ = asyncio.ensure_future(event.wait())
    due = asyncio.ensure_future(clock.wait(seconds))
    try:
        await asyncio.wait((set_, due), return_when=asyncio.FIRST_COMPLETED)
    finally:
        set_.cancel()
        due.cancel()


async def run_with_timeout(
    seconds: float | None, clock: Clock, work: Coroutine[Any, Any, Result]
) -> Result:
    """What the work comes to, if that takes at most so many seconds of this clock; None: any time.

    Raises TimeoutError otherwise, as soon as the work, which is cancelled, has come to its end.
    """
    if seconds is None:
        return await work
    working = asyncio.ensure_future(work)
    due = asyncio.ensure_future(clock.wait(seconds))
    try:
        await asyncio.wait((working, due), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise TimeoutError
        return working.result()
    finally:
        due.cancel()
        working.cancel()
        await asyncio.wait((working, due))
        if not working.cancelled():
            working.exception()  # what went wrong while it came to its end was seen
