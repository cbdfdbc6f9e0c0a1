"""Usage facts of containers, and which pods are to be evaluated when usage was measured.

Usage changes with every measurement, and most changes matter to no rule. So a pod is evaluated
again only when a fact differs by `DEADBAND` from its value at the last evaluation.
"""

from collections.abc import Mapping

import msgspec

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.usage import CpuThrottling, Usage
from podstatus.observe.ports import ContainerUsage

_SECOND = 1_000_000_000
THROTTLING_WINDOW_NANOS = 300 * _SECOND
"""As in the alert CPUThrottlingHigh of kubernetes-mixin: one slow second is no problem."""
DEADBAND = 0.02


class ContainerLoad(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Usage of a container in relation to its limits; None: unknown, or no limit."""

    memory_used_fraction: float | None = None
    """Working set / memory limit."""
    cpu_throttled_fraction: float | None = None
    """Throttled / elapsed periods of the CPU limit, within the window."""

    def differs_from(self, other: "ContainerLoad") -> bool:
        """Return whether a fact differs by the deadband, or is known in one of them only."""
        return _differ(self.memory_used_fraction, other.memory_used_fraction) or _differ(
            self.cpu_throttled_fraction, other.cpu_throttled_fraction
        )


NO_LOAD = ContainerLoad()
PodLoad = Mapping[str, ContainerLoad]
"""By container name; without those of which nothing is known."""
_NO_LOADS: PodLoad = {}


class ThrottlingWindow(msgspec.Struct, frozen=True):
    """Readings of the enforcement periods of a container."""

    readings: tuple[tuple[int, CpuThrottling], ...] = ()
    """Each with its time; the first one is the newest that is not within the window."""

    def add(self, reading: CpuThrottling, now: int) -> "ThrottlingWindow":
        readings = (*self.readings, (now, reading))
        if self.readings and reading.periods < self.readings[-1][1].periods:
            readings = readings[-1:]  # the container was restarted
        start = now - THROTTLING_WINDOW_NANOS
        expired = sum(at <= start for at, _ in readings)
        return ThrottlingWindow(readings[max(0, expired - 1) :])

    @property
    def throttled_fraction(self) -> float | None:
        """The throttled fraction of the periods; None until there are two readings."""
        if len(self.readings) < 2:
            return None
        first, last = self.readings[0][1], self.readings[-1][1]
        elapsed = last.periods - first.periods
        # An idle container has no periods.
        return (last.throttled - first.throttled) / elapsed if elapsed else 0.0


NO_WINDOW = ThrottlingWindow()


class ContainerLoads:
    """The usage facts of all containers, and their values at the last evaluation of their pod."""

    def __init__(self) -> None:
        self._loads: Mapping[PodUID, PodLoad] = {}
        self._evaluated: dict[PodUID, PodLoad] = {}
        self._windows: Mapping[tuple[PodUID, str], ThrottlingWindow] = {}
        """Of containers with a CPU limit."""

    def update(self, usage: ContainerUsage, now: int) -> list[PodUID]:
        """Take a measurement; return the pods to evaluate. `now` is monotonic nanoseconds."""
        self._windows = {
            (uid, name): self._windows.get((uid, name), NO_WINDOW).add(used.throttling, now)
            for uid, containers in usage.items()
            for name, used in containers.items()
            if used.throttling is not None
        }
        self._loads = {uid: self._pod_load(uid, containers) for uid, containers in usage.items()}
        return [uid for uid in {**self._evaluated, **self._loads} if self._is_changed(uid)]

    def is_measured(self, uid: PodUID) -> bool:
        """Return whether the pod was in the last measurement."""
        return uid in self._loads

    def evaluate(self, uid: PodUID) -> PodLoad:
        """Return the facts of a pod for an evaluation of its rules."""
        load = self._loads.get(uid, _NO_LOADS)
        if load:
            self._evaluated[uid] = load
        else:
            self._evaluated.pop(uid, None)
        return load

    def forget(self, uid: PodUID) -> None:
        """Forget the evaluation of a pod that is gone."""
        self._evaluated.pop(uid, None)

    def _pod_load(self, uid: PodUID, containers: Mapping[str, Usage]) -> PodLoad:
        loads = (
            (name, _container_load(used, self._windows.get((uid, name), NO_WINDOW)))
            for name, used in containers.items()
        )
        return {name: load for name, load in loads if load != NO_LOAD} or _NO_LOADS

    def _is_changed(self, uid: PodUID) -> bool:
        load, evaluated = self._loads.get(uid, _NO_LOADS), self._evaluated.get(uid, _NO_LOADS)
        return any(
            load.get(name, NO_LOAD).differs_from(evaluated.get(name, NO_LOAD))
            for name in {**load, **evaluated}
        )


def _container_load(used: Usage, window: ThrottlingWindow) -> ContainerLoad:
    memory, limit = used.memory_bytes, used.memory.limit_bytes
    return ContainerLoad(
        memory_used_fraction=memory / limit if memory is not None and limit else None,
        cpu_throttled_fraction=window.throttled_fraction,
    )


def _differ(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is not other
    return abs(one - other) >= DEADBAND
