"""Resource usage of containers and pods: from cgroups, else from processes; disk from folders."""

import asyncio
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping

import msgspec
from msgspec import structs

from podstatus.base.clock import Clock
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.usage import PodDiskUsage, Usage
from podstatus.runtime.process.cgroups.model.interface_files import CgroupUsage
from podstatus.runtime.process.cgroups.pod_cgroups import Cgroups
from podstatus.runtime.process.records.models import ProcessIdentity
from podstatus.runtime.process.state.process_table import (
    ProcessTable,
    read_processes,
    read_some_processes,
)
from podstatus.runtime.process.usage.counters import CounterSum, UsageCounters, counters_of
from podstatus.runtime.process.usage.disk_usage import Attempts, DiskUsageCache
from podstatus.runtime.process.usage.samples import (
    UsageSample,
    ensure_monotonic,
    fill_missing,
    is_complete,
    own_counters,
    sum_own,
    sum_parts,
    sum_processes,
    to_usage,
    with_counters,
)

RUNTIME, PODS = "runtime", "pods"
"""Upstream: SystemContainerRuntime and SystemContainerPods."""


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


class _Readings(msgspec.Struct, frozen=True, kw_only=True):
    pods: Mapping[PodUID, _PodReading]
    all_pods: CgroupUsage | None
    runtime: CgroupUsage
    runtime_processes: Mapping[Hashable, UsageCounters]


class _UsageTotals(msgspec.Struct, frozen=True, kw_only=True):
    """State of a pod between two readings."""

    pod: UsageSample
    containers: Mapping[str, UsageSample]
    counters: CounterSum
    """Of all attempts."""


class _SystemTotals(msgspec.Struct, frozen=True, kw_only=True):
    """State of the system containers between two readings."""

    samples: Mapping[str, UsageSample] = {}
    runtime_counters: CounterSum = CounterSum()
    pod_counters: CounterSum = CounterSum()


class UsageCollector:
    """Reads the usage of all pods at once; CPU rates are available from the second reading on."""

    def __init__(
        self,
        cgroups: Cgroups,
        disk_usage: DiskUsageCache,
        *,
        clock: Clock,
        processes: Callable[[], ProcessTable] = read_processes,
        some_processes: Callable[[Iterable[int]], ProcessTable] = read_some_processes,
    ) -> None:
        self._cgroups = cgroups
        self._disk_usage = disk_usage
        self._clock = clock
        self._processes = processes
        self._some_processes = some_processes
        self._totals: dict[PodUID, _UsageTotals] = {}
        self._system_totals = _SystemTotals()
        self._system: Mapping[str, Usage] = {}

    @property
    def system(self) -> Mapping[str, Usage]:
        """The usage of the runtime itself and of all pods together, at the last `read`."""
        return self._system

    async def read(
        self,
        pods: RunningContainers,
        attempts: Mapping[PodUID, Attempts],
        shims: Collection[ProcessIdentity] = (),
    ) -> dict[PodUID, PodUsage]:
        """Return the usage of each of these pods; state of other pods is dropped.

        `attempts` are those of the same pods, ended ones too; `shims` are their shims.
        """
        readings = await asyncio.to_thread(self._read_usage, pods, shims)
        usage = self._update_totals(pods, readings.pods, self._disk_usage.usage(attempts))
        self._update_system(readings)
        return usage

    def _read_usage(self, pods: RunningContainers, shims: Collection[ProcessIdentity]) -> _Readings:
        """Read everything without changing any state: this runs in another thread."""
        cgroup_usage = {
            (uid, name): self._container_cgroup_usage(uid, running.id)
            for uid, containers in pods.items()
            for name, running in containers.items()
        }
        table = None if all(map(is_complete, cgroup_usage.values())) else self._processes()
        own = [*shims, *(it.monitor for each in pods.values() for it in each.values())]
        own_table = table or self._some_processes(process.pid for process in own)
        rows = {process: row for process in own if (row := own_table.find(process)) is not None}
        return _Readings(
            pods={
                uid: _PodReading(
                    pod=self._cgroups.usage(uid),
                    containers={
                        name: fill_missing(cgroup_usage[uid, name], _process_usage(table, running))
                        for name, running in containers.items()
                    },
                )
                for uid, containers in pods.items()
            },
            all_pods=self._cgroups.pods_usage(),
            runtime=sum_own(list(rows.values()), own_table),
            runtime_processes={process: own_counters(row) for process, row in rows.items()},
        )

    def _container_cgroup_usage(self, uid: PodUID, id: str) -> CgroupUsage | None:
        usage = self._cgroups.usage(uid, id)
        if usage is None:
            return None
        pids = self._cgroups.pids(uid, id)
        return structs.replace(usage, processes=None if pids is None else len(pids))

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

    def _update_system(self, readings: _Readings) -> None:
        at, monotonic = self._clock.now(), self._clock.monotonic() / 1e9
        previous = self._system_totals
        parts = {uid: totals.pod.usage for uid, totals in self._totals.items()}
        pods = previous.pod_counters.update(
            {uid: counters_of(usage) for uid, usage in parts.items()}
        )
        runtime = previous.runtime_counters.update(readings.runtime_processes)
        summed = sum_parts(list(parts.values()), ended=pods.ended)
        usages = {
            RUNTIME: with_counters(readings.runtime, runtime.total),
            PODS: fill_missing(readings.all_pods, summed),
        }
        samples = {
            name: UsageSample(id=name, monotonic_seconds=monotonic, usage=usage)
            for name, usage in usages.items()
        }
        self._system_totals = _SystemTotals(
            samples=samples, runtime_counters=runtime, pod_counters=pods
        )
        self._system = {
            name: to_usage(sample, previous.samples.get(name), at=at)
            for name, sample in samples.items()
        }


def _process_usage(table: ProcessTable | None, running: RunningContainer) -> CgroupUsage | None:
    monitor = None if table is None else table.find(running.monitor)
    if table is None or monitor is None:
        return None
    return sum_processes(monitor, table.descendants(monitor.pid), table)


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
    counters = (previous.counters if previous else CounterSum()).update(
        {sample.id: counters_of(sample.usage) for sample in containers.values()}
    )
    total = sum_parts([part.usage for part in containers.values()], ended=counters.ended)
    pod = UsageSample(id=uid, monotonic_seconds=at, usage=fill_missing(readings.pod, total))
    return _UsageTotals(
        pod=ensure_monotonic(pod, previous.pod if previous else None),
        containers=containers,
        counters=counters,
    )


def _pod_usage(
    totals: _UsageTotals, previous: _UsageTotals | None, *, at: int, disk: PodDiskUsage | None
) -> PodUsage:
    earlier = {} if previous is None else previous.containers
    pod = to_usage(totals.pod, previous.pod if previous else None, at=at)
    return PodUsage(
        pod=structs.replace(
            pod,
            disk_bytes=disk.total.bytes if disk is not None and disk.total.is_complete else None,
        ),
        containers={
            name: to_usage(reading, earlier.get(name), at=at)
            for name, reading in totals.containers.items()
        },
        disk=disk,
    )
