"""The clock port: pure functions take `now` as an argument, services take a `Clock`."""

from typing import Protocol

_SECOND = 1_000_000_000


class Clock(Protocol):
    """A source of time for services."""

    def now(self) -> int:
        """Return the wall-clock time in nanoseconds since the Unix epoch; it may jump."""

    def monotonic(self) -> int:
        """Return the monotonic time in nanoseconds since an arbitrary start."""

    async def wait(self, seconds: float) -> None:
        """Sleep for this many seconds."""


def monotonic_seconds(clock: Clock) -> float:
    """Return the monotonic time in seconds."""
    return clock.monotonic() / _SECOND
