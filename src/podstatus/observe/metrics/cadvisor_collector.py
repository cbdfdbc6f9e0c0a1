"""Collect the metrics of `/metrics/cadvisor`: of the machine (id `/`), of pods and of containers.

A container's series has its name and its pod's; that of a pod as a whole has no container.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

import msgspec

from podstatus.kube.objects.cgroup_details import CgroupDetails, PodDetails
from podstatus.kube.objects.node import NodeSystemInfo
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState
from podstatus.kube.objects.usage import Usage
from podstatus.node.decide.readings import MachineDetails, UsageSnapshot
from podstatus.observe.metrics import cadvisor_catalog as table
from podstatus.observe.metrics.cadvisor_catalog import Number
from podstatus.observe.metrics.model import (
    Labels,
    Metric,
    Samples,
    TimestampedValue,
    Value,
    single,
)
from podstatus.runtime.port import RuntimePod

_SECOND = 1_000_000_000
_ROOT: Labels = ("", "/", "", "", "", "")
_NO_HEALTH_CHECK = -1
_T = TypeVar("_T")


class CadvisorState(msgspec.Struct, frozen=True, kw_only=True):
    """The sources of the page at one moment."""

    now: int
    snapshot: UsageSnapshot | None
    running: Mapping[PodUID, RuntimePod]
    details: Mapping[PodUID, PodDetails]
    machine: MachineDetails
    info: NodeSystemInfo


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    """The machine, a pod or a container."""

    labels: Labels
    started_at: int | None
    usage: Usage | None
    details: CgroupDetails | None


def cadvisor_metrics(state: CadvisorState) -> Iterator[Samples]:
    """Yield the metrics of `/metrics/cadvisor`. What is not known is omitted."""
    yield single(table.CONTAINER_ERROR, 1 if state.snapshot is None else 0)
    yield single(table.MACHINE_ERROR, 1 if state.snapshot is None else 0)
    if state.snapshot is None:
        return
    rows = [_machine_row(state.snapshot, state.machine), *_pod_rows(state, state.snapshot)]
    yield from _container_samples(rows, state.now)
    yield from _usage_samples(rows)
    yield from _details_samples(rows)
    yield from _device_samples(rows)
    yield from _root_samples(state.snapshot)
    yield from _machine_samples(state.snapshot, state.machine, state.info)


def _machine_row(snapshot: UsageSnapshot, machine: MachineDetails) -> _Row:
    return _Row(
        labels=_ROOT,
        started_at=snapshot.machine.booted_at,
        usage=snapshot.node,
        details=machine.details,
    )


def _pod_rows(state: CadvisorState, snapshot: UsageSnapshot) -> Iterator[_Row]:
    for uid, pod in state.running.items():
        running = [it for it in pod.facts.containers if it.state is ContainerRunState.RUNNING]
        details = state.details.get(uid)
        if not running:
            continue
        group = details.pod.cgroup if details else f"/pod{uid}"
        yield _Row(
            labels=("", group, "", "", pod.namespace, pod.name),
            started_at=min(_started_at(it) or state.now for it in running),
            usage=snapshot.pods.get(uid),
            details=details.pod if details else None,
        )
        usages = snapshot.containers.get(uid, {})
        for facts in running:
            own = details.containers.get(facts.name) if details else None
            yield _Row(
                labels=_container_labels(pod, facts, group, own),
                started_at=_started_at(facts),
                usage=usages.get(facts.name),
                details=own,
            )


def _container_labels(
    pod: RuntimePod, facts: ContainerFacts, group: str, details: CgroupDetails | None
) -> Labels:
    name = facts.id.rpartition("://")[2]
    path = details.cgroup if details else f"{group}/{name}"
    return facts.name, path, facts.image, name, pod.namespace, pod.name


def _started_at(facts: ContainerFacts) -> int | None:
    return facts.started_at.unix_nanos() if facts.started_at else None


def _container_samples(rows: list[_Row], now: int) -> Iterator[Samples]:
    yield Samples(table.LAST_SEEN, {it.labels: _at(now // _SECOND, now) for it in rows})
    starts = {it.labels: it.started_at / _SECOND for it in rows if it.started_at is not None}
    yield Samples(table.START, starts)
    health = {it.labels: _at(_NO_HEALTH_CHECK, it.usage.at) for it in rows if it.usage is not None}
    yield Samples(table.HEALTH, health)


def _usage_samples(rows: list[_Row]) -> Iterator[Samples]:
    measured = [(it.labels, it.usage) for it in rows if it.usage is not None]
    cpu = {
        (*labels, "total"): _at(usage.cpu_seconds, usage.at)
        for labels, usage in measured
        if usage.cpu_seconds is not None
    }
    yield Samples(table.CPU_USAGE, cpu)
    yield Samples(table.MEMORY_FAILURES, dict(_memory_failures(measured)))
    timed = [(labels, usage, usage.at) for labels, usage in measured]
    for metric, value in table.FROM_USAGE:
        yield _samples(metric, value, timed)


def _memory_failures(
    measured: Iterable[tuple[Labels, Usage]],
) -> Iterator[tuple[Labels, Value]]:
    for labels, usage in measured:
        for kind, count in (
            ("pgfault", usage.memory.page_faults),
            ("pgmajfault", usage.memory.major_page_faults),
        ):
            if count is not None:
                for scope in ("container", "hierarchy"):
                    yield (*labels, kind, scope), _at(count, usage.at)


def _details_samples(rows: list[_Row]) -> Iterator[Samples]:
    measured = [(it.labels, it.details, it.details.at) for it in rows if it.details is not None]
    for metric, value in table.FROM_DETAILS:
        yield _samples(metric, value, measured)
    for metric, value in table.SPECS:
        limits = {labels: value(details) for labels, details, _ in measured}
        yield Samples(metric, {labels: it for labels, it in limits.items() if it is not None})
    ulimits = {
        (*labels, "max_open_files"): _at(details.processes.max_open_files, at)
        for labels, details, at in measured
        if details.processes.max_open_files is not None
    }
    yield Samples(table.ULIMITS, ulimits)


def _device_samples(rows: list[_Row]) -> Iterator[Samples]:
    measured = [
        (it.labels, device, it.details.at)
        for it in rows
        if it.details is not None
        for device in it.details.devices
    ]
    by_device = [((*labels, device.device), device, at) for labels, device, at in measured]
    for metric, value in table.FROM_DEVICES:
        yield _samples(metric, value, by_device)
    yield Samples(
        table.BLKIO,
        {
            (*labels, it.device, str(it.major), str(it.minor), operation): _at(count, at)
            for labels, it, at in measured
            for operation, count in it.bytes_by_operation.items()
        },
    )


def _root_samples(snapshot: UsageSnapshot) -> Iterator[Samples]:
    """Yield what only the machine has: its filesystem and its network interfaces."""
    disk, at = snapshot.machine.disk, snapshot.at
    disks = [] if disk is None else [((*_ROOT, disk.device), disk, at)]
    for metric, of_disk in table.FROM_FILESYSTEM:
        yield _samples(metric, of_disk, disks)
    interfaces = [((*_ROOT, it.name), it, at) for it in snapshot.machine.interfaces]
    for metric, of_interface in table.FROM_INTERFACES:
        yield _samples(metric, of_interface, interfaces)


def _machine_samples(
    snapshot: UsageSnapshot, machine: MachineDetails, info: NodeSystemInfo
) -> Iterator[Samples]:
    labels = (info.boot_id, info.machine_id, info.system_uuid)
    values: list[tuple[Metric, Number]] = [
        (table.PHYSICAL_CORES, machine.physical_cores),
        (table.SOCKETS, machine.sockets),
        *((metric, value(snapshot.machine)) for metric, value in table.FROM_MACHINE),
    ]
    for metric, number in values:
        yield _samples(metric, lambda it: it, [(labels, number, snapshot.at)])


def _samples(
    metric: Metric, value: Callable[[_T], Number], measured: Iterable[tuple[Labels, _T, int]]
) -> Samples:
    numbers = ((labels, value(source), at) for labels, source, at in measured)
    return Samples(
        metric, {labels: _at(number, at) for labels, number, at in numbers if number is not None}
    )


def _at(number: float, at: int) -> TimestampedValue:
    return TimestampedValue(number, at / _SECOND)
