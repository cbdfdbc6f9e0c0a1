"""Resource usage of containers and pods: from cgroups, else from processes; disk from folders."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from podstatus.base.clock import Clock
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.usage import PodDiskUsage, Usage
from podstatus.runtime.process.cgroups.model.interface_files import CgroupUsage
from podstatus.runtime.process.cgroups.pod_cgroups import Cgroups
from podstatus.runtime.process.records.models import ProcessIdentity
from podstatus.runtime.process.state.process_table import ProcessRow, ProcessTable, read_processes
from podstatus.runtime.process.usage.disk_usage import Attempts, DiskUsageCache

_N = TypeVar("_N", int, float)


class UsageSample(msgspec.Struct, frozen=True, kw_only=True):
    """One reading of a container or pod."""

    id: str
    """ID of the attempt or pod; a new attempt starts from zero."""
    monotonic_seconds: float
    """Monotonic clock, seconds."""
    usage: CgroupUsage


def sum_processes(monitor: ProcessRow, processes: Sequence[ProcessRow]) -> CgroupUsage:
    """Return the usage of a container without a cgroup: the sum over its monitor's descendants.

    The monitor itself belongs to the agent, but its reaped children count. Shared memory is counted
    once per process.
    """
    seconds = sum(row.own_seconds + row.children_seconds for row in processes)
    return CgroupUsage(
        cpu_seconds=seconds + monitor.children_seconds,
        memory_bytes=sum(row.resident_bytes for row in processes),
        pids=sum(row.threads for row in processes),
    )


def sum_containers(parts: Sequence[CgroupUsage], *, ended_seconds: float) -> CgroupUsage:
    """Return the usage of a pod without a cgroup; unknown if that of one container is unknown."""
    seconds = _sum(part.cpu_seconds for part in parts)
    return CgroupUsage(
        cpu_seconds=None if seconds is None else seconds + ended_seconds,
        memory_bytes=_sum(part.memory_bytes for part in parts),
        pids=_sum(part.pids for part in parts),
    )


def fill_missing(reading: CgroupUsage | None, other: CgroupUsage | None) -> CgroupUsage:
    """Return the first reading, completed from the second."""
    first, second = reading or CgroupUsage(), other or CgroupUsage()
    return CgroupUsage(
        cpu_seconds=second.cpu_seconds if first.cpu_seconds is None else first.cpu_seconds,
        memory_bytes=second.memory_bytes if first.memory_bytes is None else first.memory_bytes,
        pids=second.pids if first.pids is None else first.pids,
    )


def is_complete(reading: CgroupUsage | None) -> bool:
    """Return whether all values are known."""
    return reading is not None and None not in msgspec.structs.astuple(reading)


def ensure_monotonic(reading: UsageSample, previous: UsageSample | None) -> UsageSample:
    """Keep CPU time from decreasing: a sum over processes may shrink when some end unnoticed."""
    cpu_seconds = (
        None if previous is None or previous.id != reading.id else previous.usage.cpu_seconds
    )
    if cpu_seconds is None or (reading.usage.cpu_seconds or 0.0) >= cpu_seconds:
        return reading
    used = msgspec.structs.replace(reading.usage, cpu_seconds=cpu_seconds)
    return msgspec.structs.replace(reading, usage=used)


def to_usage(reading: UsageSample, previous: UsageSample | None, *, at: int) -> Usage:
    """Convert a sample to `Usage`; `at` is in ns since the Unix epoch."""
    return Usage(
        at=at,
        cpu_seconds=reading.usage.cpu_seconds,
        cpu_cores=_cores(reading, previous),
        memory_bytes=reading.usage.memory_bytes,
        pids=reading.usage.pids,
    )


def _cores(reading: UsageSample, previous: UsageSample | None) -> float | None:
    if (
        previous is None
        or previous.id != reading.id
        or reading.monotonic_seconds <= previous.monotonic_seconds
    ):
        return None
    current, earlier = reading.usage.cpu_seconds, previous.usage.cpu_seconds
    if current is None or earlier is None:
        return None
    return (current - earlier) / (reading.monotonic_seconds - previous.monotonic_seconds)


def _sum(numbers: Iterable[_N | None]) -> _N | None:
    values = list(numbers)
    known = [number for number in values if number is not None]
    return sum(known) if len(known) == len(values) else None


class RunningContainer(msgspec.Struct, frozen=True, kw_only=True):
    """A running attempt, and its monitor process."""

    id: str
    """Container ID without the scheme."""
    monitor: ProcessIdentity


class PodUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Usage of a pod and its containers."""

    pod: Usage
    containers: Mapping[str, Usage]
    """Running containers, by name."""
    disk: PodDiskUsage | None
    """None until it has been measured."""


RunningContainers = Mapping[PodUID, Mapping[str, RunningContainer]]
"""All pods, each with its running containers by name."""


class _PodReading(msgspec.Struct, frozen=True, kw_only=True):
    pod: CgroupUsage | None
    containers: Mapping[str, CgroupUsage]


class _UsageTotals(msgspec.Struct, frozen=True, kw_only=True):
    """State of a pod between two readings."""

    pod: UsageSample
    containers: Mapping[str, UsageSample]
    ended_seconds: float
    """CPU time of ended containers, as of their last reading."""


class UsageCollector:
    """Reads the usage of all pods at once; CPU rates are available from the second reading on."""

    def __init__(
        self,
        cgroups: Cgroups,
        disk_usage: DiskUsageCache,
        *,
        clock: Clock,
        processes: Callable[[], ProcessTable] = read_processes,
    ) -> None:
        self._cgroups = cgroups
        self._disk_usage = disk_usage
        self._clock = clock
        self._processes = processes
        self._totals: dict[PodUID, _UsageTotals] = {}

    async def read(
        self, pods: RunningContainers, attempts: Mapping[PodUID, Attempts]
    ) -> dict[PodUID, PodUsage]:
        """Return the usage of each of these pods; state of other pods is dropped.

        `attempts` are those of the same pods, ended ones too.
        """
        readings = await asyncio.to_thread(self._read_usage, pods)
        return self._update_totals(pods, readings, self._disk_usage.usage(attempts))

    def _read_usage(self, pods: RunningContainers) -> dict[PodUID, _PodReading]:
        """Read everything without changing any state: this runs in another thread."""
        cgroup_usage = {
            (uid, name): self._cgroups.usage(uid, running.id)
            for uid, containers in pods.items()
            for name, running in containers.items()
        }
        table = None if all(map(is_complete, cgroup_usage.values())) else self._processes()
        return {
            uid: _PodReading(
                pod=self._cgroups.usage(uid),
                containers={
                    name: fill_missing(cgroup_usage[uid, name], _process_usage(table, running))
                    for name, running in containers.items()
                },
            )
            for uid, containers in pods.items()
        }

    def _update_totals(
        self,
        pods: RunningContainers,
        readings: Mapping[PodUID, _PodReading],
        disks: Mapping[PodUID, PodDiskUsage],
    ) -> dict[PodUID, PodUsage]:
        at, monotonic = self._clock.now(), self._clock.monotonic() / 1e9
        previous = self._totals
        self._totals = {
            uid: _new_totals(uid, pods[uid], readings[uid], previous.get(uid), monotonic)
            for uid in pods
        }
        return {
            uid: _pod_usage(totals, previous.get(uid), at=at, disk=disks.get(uid))
            for uid, totals in self._totals.items()
        }


def _process_usage(table: ProcessTable | None, running: RunningContainer) -> CgroupUsage | None:
    monitor = None if table is None else table.find(running.monitor)
    if table is None or monitor is None:
        return None
    return sum_processes(monitor, table.descendants(monitor.pid))


def _new_totals(
    uid: PodUID,
    running: Mapping[str, RunningContainer],
    readings: _PodReading,
    previous: _UsageTotals | None,
    at: float,
) -> _UsageTotals:
    earlier = {} if previous is None else previous.containers
    containers = {
        name: ensure_monotonic(
            UsageSample(id=running[name].id, monotonic_seconds=at, usage=used), earlier.get(name)
        )
        for name, used in readings.containers.items()
    }
    ended = _ended_seconds(earlier, containers) + (previous.ended_seconds if previous else 0.0)
    total = sum_containers([part.usage for part in containers.values()], ended_seconds=ended)
    pod = UsageSample(id=uid, monotonic_seconds=at, usage=fill_missing(readings.pod, total))
    return _UsageTotals(
        pod=ensure_monotonic(pod, previous.pod if previous else None),
        containers=containers,
        ended_seconds=ended,
    )


def _ended_seconds(earlier: Mapping[str, UsageSample], now: Mapping[str, UsageSample]) -> float:
    return sum(
        reading.usage.cpu_seconds or 0.0
        for name, reading in earlier.items()
        if name not in now or now[name].id != reading.id
    )


def _pod_usage(
    totals: _UsageTotals, previous: _UsageTotals | None, *, at: int, disk: PodDiskUsage | None
) -> PodUsage:
    earlier = {} if previous is None else previous.containers
    pod = to_usage(totals.pod, previous.pod if previous else None, at=at)
    return PodUsage(
        pod=msgspec.structs.replace(
            pod,
            disk_bytes=disk.total.bytes if disk is not None and disk.total.is_complete else None,
        ),
        containers={
            name: to_usage(reading, earlier.get(name), at=at)
            for name, reading in totals.containers.items()
        },
        disk=disk,
    )
