"""Time as a port: decisions are told what time it is, services ask a clock."""

from typing import Protocol


class Clock(Protocol):
    """What a service needs to know about time."""

    def now(self) -> int:
        """Wall-clock time in nanoseconds since the Unix epoch."""

    async def wait(self, seconds: float) -> None:
        """Come back after so many seconds."""


class Elapsed:
    """Seconds since it was made, by a clock that others may set: they never go back.

    What passes while the clock is set back does not count; if it is set ahead, that does.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = clock.now()
        self._nanos = 0

    def seconds(self) -> float:
        """How much has passed."""
        now = self._clock.now()
        self._nanos += max(0, now - self._last)
        self._last = now
        return self._nanos / 1e9
