"""Whether the node runs out of something: thresholds, and how long a pressure is remembered.

Upstream: pkg/kubelet/eviction, helpers.go v1.36.4.
"""

from collections.abc import Mapping

import msgspec
from msgspec import structs

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
"""Known to the kubelet; we keep no images."""

_NANO = 1_000_000_000
_RECOVERY_FACTOR = 2
"""So many times its threshold of a disk is more than enough: there is no pressure near."""
_RECOVERY_HOLD_SECONDS = 5.0
"""For which a pressure is shown after it was last seen, if there is more than enough again."""


class Threshold(msgspec.Struct, frozen=True, kw_only=True):
    """Less than this of something is too little: an amount, or a part of all there is."""

    amount: int = 0
    percent: float = 0.0

    def amount_of(self, total: int) -> int:
        """The amount, out of so much. Percentages are cut to whole units, as upstream does."""
        return int(total * self.percent / 100) if self.percent else self.amount


class SignalObservation(msgspec.Struct, frozen=True):
    """How much of something is left, and how much there is."""

    available: int
    total: int


class PressureHistory(msgspec.Struct, frozen=True):
    """When each pressure was last seen: nanoseconds since the Unix epoch, by condition."""

    seen_at: dict[str, int] = {}

    def with_observation(self, pressures: frozenset[str], now: int) -> "PressureHistory":
        """After one look more. If the clock was set back, what was seen before counts from now."""
        before = {condition: min(at, now) for condition, at in self.seen_at.items()}
        return structs.replace(self, seen_at=before | dict.fromkeys(pressures, now))

    def active(
        self, seconds: float, now: int, recovered: frozenset[str] = frozenset()
    ) -> frozenset[str]:
        """Those that were seen within so many seconds: a node does not flap between them.

        Those of which there is more than enough again (`recovered_pressures`) for 5 s at most.
        """
        short = min(seconds, _RECOVERY_HOLD_SECONDS)
        return frozenset(
            condition
            for condition, at in self.seen_at.items()
            if now - at < (short if condition in recovered else seconds) * _NANO
        )


def parse_thresholds(eviction_hard: Mapping[str, str]) -> dict[str, Threshold]:
    """The thresholds of `evictionHard`; raises ValueError that names all that is wrong."""
    found: dict[str, Threshold] = {}
    mistakes = []
    for signal, text in eviction_hard.items():
        if signal in IGNORED_SIGNALS:
            continue
        try:
            found[signal] = _threshold(signal, text)
        except ValueError as error:
            mistakes.append(str(error))
    if mistakes:
        raise ValueError("; ".join(mistakes))
    return found


def _threshold(signal: str, text: str) -> Threshold:
    if signal not in CONDITION_BY_SIGNAL:
        known = ", ".join([*CONDITION_BY_SIGNAL, *IGNORED_SIGNALS])
        raise ValueError(f"unknown eviction signal {signal!r}; known are {known}")
    if text.endswith("%"):
        return Threshold(percent=_percent(signal, text))
    try:
        amount = Quantity.parse(text).nanos // _NANO
    except QuantityError as error:
        raise ValueError(f"evictionHard[{signal}]: {error}") from error
    if amount < 0:
        raise ValueError(f"evictionHard[{signal}] is {text}; no less than 0 is expected")
    return Threshold(amount=amount)


def _percent(signal: str, text: str) -> float:
    try:
        percent = float(text.removesuffix("%"))
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= 100:
        raise ValueError(f"evictionHard[{signal}] is {text}; 0% to 100% is expected")
    return percent


def signal_observations(machine: MachineReading) -> dict[str, SignalObservation]:
    """How much there is of what can run out, as far as it is known."""
    found = {
        MEMORY_AVAILABLE: SignalObservation(machine.memory_available_bytes, machine.memory_bytes)
    }
    disk = machine.disk
    if disk is not None:
        found[NODEFS_AVAILABLE] = SignalObservation(disk.available_bytes, disk.total_bytes)
        if disk.inodes:
            found[NODEFS_INODES_FREE] = SignalObservation(disk.inodes_free, disk.inodes)
    if machine.max_pids is not None:
        found[PID_AVAILABLE] = SignalObservation(machine.max_pids - machine.pids, machine.max_pids)
    return found


def pressures(machine: MachineReading, thresholds: Mapping[str, Threshold]) -> frozenset[str]:
    """The conditions that a reading calls for."""
    known = signal_observations(machine)
    return frozenset(
        CONDITION_BY_SIGNAL[signal]
        for signal, threshold in thresholds.items()
        if signal in known and known[signal].available < threshold.amount_of(known[signal].total)
    )


def recovered_pressures(
    machine: MachineReading, thresholds: Mapping[str, Threshold]
) -> frozenset[str]:
    """DiskPressure, if a reading shows twice as much of the disk as is needed.

    Memory and processes come and go with what runs; room on a disk was made by removing something.
    """
    known = signal_observations(machine)
    ample = [
        known[signal].available >= _RECOVERY_FACTOR * threshold.amount_of(known[signal].total)
        for signal, threshold in thresholds.items()
        if signal in known and CONDITION_BY_SIGNAL[signal] == DISK_PRESSURE
    ]
    return frozenset([DISK_PRESSURE]) if ample and all(ample) else frozenset()
