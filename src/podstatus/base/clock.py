"""The clock port: pure functions take `now` as an argument, services take a `Clock`."""

from typing import Protocol


class Clock(Protocol):
    """A source of time for services."""

    def now(self) -> int:
        """Return the wall-clock time in nanoseconds since the Unix epoch; it may jump."""

    def monotonic(self) -> int:
        """Return the monotonic time in nanoseconds since an arbitrary start."""

    async def wait(self, seconds: float) -> None:
        """Sleep for this many seconds."""


class Elapsed:
    """A stopwatch on the monotonic clock, so wall-clock jumps do not affect it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._start_ns = clock.monotonic()

    def seconds(self) -> float:
        """Return the seconds since the stopwatch was created."""
        return (self._clock.monotonic() - self._start_ns) / 1e9
