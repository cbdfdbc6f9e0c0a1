"""Wall-clock time, clamped to the supported range."""

import time

_MAX_NANOS = 8_204_889_600_000_000_000
"""2230-01-01, as in `podstatus.base.system_clock`: later times may not fit in 64 bits."""


def wall_nanos() -> int:
    """Return ns since the Unix epoch. A clock out of range counts as at the end of the range."""
    try:
        now = time.time_ns()
    except OverflowError:  # a year after 2262
        now = _MAX_NANOS
    if now >= _MAX_NANOS:
        return _MAX_NANOS + time.monotonic_ns()
    return now if now >= 0 else time.monotonic_ns()
