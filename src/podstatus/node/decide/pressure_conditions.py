"""Resource pressure: eviction thresholds, and how long a pressure persists.

Upstream: pkg/kubelet/eviction, helpers.go v1.36.4.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from msgspec import structs

from podstatus.base.clock import Clock
from podstatus.kube.scalars.quantity import Quantity, QuantityError
from podstatus.node.decide.readings import MachineReading

MEMORY_PRESSURE = "MemoryPressure"
DISK_PRESSURE = "DiskPressure"
PID_PRESSURE = "PIDPressure"

MEMORY_AVAILABLE = "memory.available"
NODEFS_AVAILABLE = "nodefs.available"
NODEFS_INODES_FREE = "nodefs.inodesFree"
PID_AVAILABLE = "pid.available"

CONDITION_BY_SIGNAL = {
    MEMORY_AVAILABLE: MEMORY_PRESSURE,
    NODEFS_AVAILABLE: DISK_PRESSURE,
    NODEFS_INODES_FREE: DISK_PRESSURE,
    PID_AVAILABLE: PID_PRESSURE,
}
IGNORED_SIGNALS = tuple(
    f"{filesystem}.{what}"
    for filesystem in ("imagefs", "containerfs")
    for what in ("available", "inodesFree")
)
"""Signals of the kubelet that do not apply, since this agent stores no images."""

_NANO = 1_000_000_000
_RECOVERY_FACTOR = 2
"""DiskPressure is over early when this many times the threshold is available."""
_RECOVERY_HOLD_SECONDS = 5.0
"""How long a pressure persists after such a recovery."""


class Threshold(msgspec.Struct, frozen=True, kw_only=True):
    """Minimum available amount: absolute, or in percent of the total."""

    amount: int = 0
    percent: float = 0.0

    def amount_of(self, total: int) -> int:
        """The threshold for this total. Percentages are rounded down, as upstream does."""
        return int(total * self.percent / 100) if self.percent else self.amount


class SignalObservation(msgspec.Struct, frozen=True):
    """Available and total amount of a resource."""

    available: int
    total: int


class PressureHistory(msgspec.Struct, frozen=True):
    """When each pressure was last observed: monotonic time in ns, by condition."""

    seen_at: dict[str, int] = {}

    def with_observation(self, pressures: frozenset[str], now: int) -> "PressureHistory":
        """Return the history with these pressures observed at `now`."""
        return structs.replace(self, seen_at=self.seen_at | dict.fromkeys(pressures, now))

    def active(
        self, seconds: float, now: int, recovered: frozenset[str] = frozenset()
    ) -> frozenset[str]:
        """Pressures observed within the last `seconds`, so that conditions do not flap.

        For `recovered` ones (see `recovered_pressures`), at most 5 s.
        """
        short = min(seconds, _RECOVERY_HOLD_SECONDS)
        return frozenset(
            condition
            for condition, at in self.seen_at.items()
            if now - at < (short if condition in recovered else seconds) * _NANO
        )


def parse_thresholds(eviction_hard: Mapping[str, str]) -> dict[str, Threshold]:
    """Parse `evictionHard`. Raises ValueError that lists all errors."""
    thresholds: dict[str, Threshold] = {}
    errors = []
    for signal, text in eviction_hard.items():
        if signal in IGNORED_SIGNALS:
            continue
        try:
            thresholds[signal] = _threshold(signal, text)
        except ValueError as error:
            errors.append(str(error))
    if errors:
        raise ValueError("; ".join(errors))
    return thresholds


def _threshold(signal: str, text: str) -> Threshold:
    if signal not in CONDITION_BY_SIGNAL:
        supported = ", ".join([*CONDITION_BY_SIGNAL, *IGNORED_SIGNALS])
        raise ValueError(f"unknown eviction signal {signal!r}; use one of {supported}")
    if text.endswith("%"):
        return Threshold(percent=_percent(signal, text))
    try:
        amount = Quantity.parse(text).nanos // _NANO
    except QuantityError as error:
        raise ValueError(f"evictionHard[{signal}]: {error}") from error
    if amount < 0:
        raise ValueError(f"evictionHard[{signal}] is {text}; use 0 or more")
    return Threshold(amount=amount)


def _percent(signal: str, text: str) -> float:
    try:
        percent = float(text.removesuffix("%"))
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= 100:
        raise ValueError(f"evictionHard[{signal}] is {text}; use 0% to 100%")
    return percent


def signal_observations(machine: MachineReading) -> dict[str, SignalObservation]:
    """Available and total amounts by signal; unknown ones are left out."""
    observations = {
        MEMORY_AVAILABLE: SignalObservation(machine.memory_available_bytes, machine.memory_bytes)
    }
    disk = machine.disk
    if disk is not None:
        observations[NODEFS_AVAILABLE] = SignalObservation(disk.available_bytes, disk.total_bytes)
        if disk.inodes:
            observations[NODEFS_INODES_FREE] = SignalObservation(disk.inodes_free, disk.inodes)
    if machine.max_pids is not None:
        observations[PID_AVAILABLE] = SignalObservation(
            machine.max_pids - machine.pids, machine.max_pids
        )
    return observations


def pressures(machine: MachineReading, thresholds: Mapping[str, Threshold]) -> frozenset[str]:
    observations = signal_observations(machine)
    return frozenset(
        CONDITION_BY_SIGNAL[signal]
        for signal, threshold in thresholds.items()
        if signal in observations
        and observations[signal].available < threshold.amount_of(observations[signal].total)
    )


def recovered_pressures(
    machine: MachineReading, thresholds: Mapping[str, Threshold]
) -> frozenset[str]:
    """DiskPressure, if a reading shows at least twice the required free space and inodes.

    Only for disks: memory and process counts fluctuate, but disk space was freed by a deletion.
    """
    observations = signal_observations(machine)
    ample = [
        observations[signal].available
        >= _RECOVERY_FACTOR * threshold.amount_of(observations[signal].total)
        for signal, threshold in thresholds.items()
        if signal in observations and CONDITION_BY_SIGNAL[signal] == DISK_PRESSURE
    ]
    return frozenset([DISK_PRESSURE]) if ample and all(ample) else frozenset()


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
