"""What time it is, whatever the clock of the machine shows."""

import time

_MAX_NANOS = 8_204_889_600_000_000_000
"""2230-01-01, as in `podstatus.base.aio`: later times may not fit in 64 bits."""


def wall_nanos() -> int:
    """Nanoseconds since the Unix epoch. A clock out of range counts as one at its end."""
    try:
        now = time.time_ns()
    except OverflowError:  # a year after 2262
        now = _MAX_NANOS
    if now >= _MAX_NANOS:
        return _MAX_NANOS + time.monotonic_ns()
    return now if now >= 0 else time.monotonic_ns()
