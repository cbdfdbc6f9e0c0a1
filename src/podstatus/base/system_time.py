"""The time of this machine, without an event loop."""

import time
from collections.abc import Callable

_MAX_WALL_CLOCK_NS = 8_204_889_600_000_000_000
"""2230-01-01: leaves 30 years before nanoseconds overflow 64 bits. The kernel accepts no time after
2232."""


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
