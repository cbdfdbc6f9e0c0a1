"""Who is still alive: services beat, and whoever asks is told who has not for too long.

    beat = heartbeats.expect("relist", at_most=180)
    while True:
        beat()
        ...

Time is told by a clock that nobody sets: one that jumps by an hour makes nobody silent. If time
that the machine slept counts, as in `base.loop.steady_nanos`, give a service room to recover: the
first question after a long sleep may find everyone silent.
"""

from collections.abc import Callable

import msgspec

_SECOND = 1_000_000_000


class StalledService(msgspec.Struct, frozen=True, kw_only=True):
    """A service that has not been heard of for longer than it may be silent."""

    name: str
    silent_seconds: float
    max_silent_seconds: float
    is_vital: bool = True
    """Whether others cannot do their work without it."""

    def __str__(self) -> str:
        return (
            f"{self.name} was last active {self.silent_seconds:.0f} s ago; "
            f"threshold is {self.max_silent_seconds:g} s"
        )


class Heartbeats:
    """The last sign of life of every service. For one event loop."""

    def __init__(self, monotonic: Callable[[], int]) -> None:
        """`monotonic`: nanoseconds of a clock that nobody sets."""
        self._monotonic = monotonic
        self._services: dict[str, tuple[float, bool]] = {}
        """How long each may be silent, and whether it is vital."""
        self._last_heartbeat: dict[str, int] = {}

    def register(
        self, name: str, *, max_silent_seconds: float, is_vital: bool = True
    ) -> Callable[[], None]:
        """Name a service that is to beat once in so many seconds; what it calls when it does.

        It counts as alive from now on.
        """
        self._services[name] = max_silent_seconds, is_vital

        def beat() -> None:
            self._last_heartbeat[name] = self._monotonic()

        beat()
        return beat

    def names(self) -> list[str]:
        """All that are expected to be alive, sorted."""
        return sorted(self._services)

    def stalled(self) -> list[StalledService]:
        """Those that have been silent for too long, sorted by name."""
        return [found for name in self.names() if (found := self.find_stalled(name))]

    def silent_seconds(self, name: str) -> float:
        """Since when nothing was heard of this one. Raises KeyError if nobody expects it."""
        return (self._monotonic() - self._last_heartbeat[name]) / _SECOND

    def find_stalled(self, name: str) -> StalledService | None:
        """This one, if it has been silent for too long. Raises KeyError if nobody expects it."""
        (at_most, is_vital), silent = self._services[name], self.silent_seconds(name)
        if silent <= at_most:
            return None
        return StalledService(
            name=name, silent_seconds=silent, max_silent_seconds=at_most, is_vital=is_vital
        )
