"""Time as a port: decisions are told what time it is, services ask a clock."""

from typing import Protocol


class Clock(Protocol):
    """What a service needs to know about time."""

    def now(self) -> int:
        """Wall-clock time in nanoseconds since the Unix epoch."""

    async def wait(self, seconds: float) -> None:
        """Come back after so many seconds."""
