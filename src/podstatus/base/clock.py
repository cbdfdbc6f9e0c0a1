"""Time as a port: decisions are told what time it is, services ask a clock."""

from typing import Protocol


class Clock(Protocol):
    """What a service needs to know about time."""

    def now(self) -> int:
        """Wall-clock time in nanoseconds since the Unix epoch: others may set it."""

    def monotonic(self) -> int:
        """Nanoseconds of the monotonic clock, since some moment before."""

    async def wait(self, seconds: float) -> None:
        """Come back after so many seconds."""


class Elapsed:
    """Seconds since it was made, by the monotonic clock: it does not see that the time is set."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._start_ns = clock.monotonic()

    def seconds(self) -> float:
        """How much has passed."""
        return (self._clock.monotonic() - self._start_ns) / 1e9
