"""Liveness of services: each service calls its heartbeat, and stalled ones can be listed.

    heartbeat = heartbeats.register("relist", max_silent_seconds=180)
    while True:
        heartbeat()
        ...

Uses the monotonic clock, so a wall-clock jump never marks a service as stalled. Since it includes
suspended time, all services may appear stalled right after the machine resumes: give them time to
recover before acting on it.
"""

from collections.abc import Callable

import msgspec

from podstatus.base.clock import Clock

_SECOND = 1_000_000_000


class StalledService(msgspec.Struct, frozen=True, kw_only=True):
    """A service whose last heartbeat is older than its threshold."""

    name: str
    silent_seconds: float
    max_silent_seconds: float
    is_vital: bool = True
    """Whether other services depend on it."""

    def __str__(self) -> str:
        return (
            f"{self.name} was last active {self.silent_seconds:.0f} s ago; "
            f"threshold is {self.max_silent_seconds:g} s"
        )


class Heartbeats:
    """The last heartbeat of every service. Not thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._services: dict[str, tuple[float, bool]] = {}
        """Threshold in seconds, and whether the service is vital, by name."""
        self._last_heartbeat: dict[str, int] = {}

    def register(
        self, name: str, *, max_silent_seconds: float, is_vital: bool = True
    ) -> Callable[[], None]:
        """Register a service and return its heartbeat function.

        The registration counts as the first heartbeat.
        """
        self._services[name] = max_silent_seconds, is_vital

        def beat() -> None:
            self._last_heartbeat[name] = self._clock.monotonic()

        beat()
        return beat

    def names(self) -> list[str]:
        """Return the names of all registered services, sorted."""
        return sorted(self._services)

    def stalled(self) -> list[StalledService]:
        """Return all stalled services, sorted by name."""
        return [service for name in self.names() if (service := self.find_stalled(name))]

    def silent_seconds(self, name: str) -> float:
        """Return the seconds since the last heartbeat. Raises KeyError if not registered."""
        return (self._clock.monotonic() - self._last_heartbeat[name]) / _SECOND

    def find_stalled(self, name: str) -> StalledService | None:
        """Return the service if it is stalled, else None. Raises KeyError if not registered."""
        (max_silent, is_vital), silent = self._services[name], self.silent_seconds(name)
        if silent <= max_silent:
            return None
        return StalledService(
            name=name, silent_seconds=silent, max_silent_seconds=max_silent, is_vital=is_vital
        )
