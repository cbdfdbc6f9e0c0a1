"""Have the node looked at sooner while it is short of something, and when it no longer is."""

from collections.abc import Callable, Mapping
from typing import Final

from podstatus.base.clock import Clock, Elapsed
from podstatus.node.decide.pressure import Threshold, pressures
from podstatus.node.decide.readings import MachineReading

_RECOVERY_SECONDS: Final = 30.0
"""After the last shortage in which the status is brought up to date with every reading."""


class PressureMonitor:
    """Follows the readings of a machine. For one event loop."""

    def __init__(
        self,
        thresholds: Mapping[str, Threshold],
        on_change: Callable[[], None],
        *,
        clock: Clock,
    ) -> None:
        """`on_change`: the pressures of the node may be others than its status says."""
        self._thresholds = thresholds
        self._on_change = on_change
        self._clock = clock
        self._pressures: frozenset[str] = frozenset()
        self._since_pressure: Elapsed | None = None

    def observe(self, machine: MachineReading) -> bool:
        """Take a reading; whether the next one is wanted soon."""
        short = pressures(machine, self._thresholds)
        changed = short != self._pressures
        self._pressures = short
        if short:
            self._since_pressure = Elapsed(self._clock)
        recovering = not short and self._is_recent()
        if changed or recovering:
            self._on_change()
        return bool(short) or recovering

    def _is_recent(self) -> bool:
        last = self._since_pressure
        return last is not None and last.seconds() < _RECOVERY_SECONDS
