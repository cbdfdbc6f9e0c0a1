"""Update the node status early when a pressure starts or ends."""

from collections.abc import Callable, Mapping
from typing import Final

from podstatus.base.clock import Clock
from podstatus.node.decide.pressure_conditions import Threshold, pressures
from podstatus.node.decide.readings import MachineReading

_RECOVERY_NS: Final = 30 * 10**9
"""Time after the last pressure during which every reading updates the status."""


class PressureMonitor:
    """Compares machine readings with the thresholds. Not thread-safe."""

    def __init__(
        self,
        thresholds: Mapping[str, Threshold],
        on_change: Callable[[], None],
        *,
        clock: Clock,
    ) -> None:
        """`on_change` is called when the pressures may differ from the node status."""
        self._thresholds = thresholds
        self._on_change = on_change
        self._clock = clock
        self._pressures: frozenset[str] = frozenset()
        self._last_pressure: int | None = None

    def observe(self, machine: MachineReading) -> bool:
        """Process a reading. Return whether the next one should follow soon."""
        active = pressures(machine, self._thresholds)
        changed = active != self._pressures
        self._pressures = active
        if active:
            self._last_pressure = self._clock.monotonic()
        recovering = not active and self._is_recent()
        if changed or recovering:
            self._on_change()
        return bool(active) or recovering

    def _is_recent(self) -> bool:
        last = self._last_pressure
        return last is not None and self._clock.monotonic() - last < _RECOVERY_NS
