"""Readings of the machine, as values."""

from collections.abc import Mapping

import msgspec
from msgspec import structs

from podstatus.base.pressure import NO_PRESSURES, Pressures
from podstatus.kube.objects.cgroup_details import CgroupDetails
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.usage import NO_MEMORY_USAGE, MemoryUsage, PodDiskUsage, Usage
from podstatus.node.decide.measured_usage import (
    CPU,
    DISK,
    INODES,
    MEMORY,
    PIDS,
    NodeUsageSample,
)


class CpuTimes(msgspec.Struct, frozen=True):
    """CPU seconds of all processors since boot."""

    busy: float
    total: float

    def cores_since(self, before: "CpuTimes", cores: int) -> float | None:
        """Mean number of busy processors since `before`; None if no time has passed."""
        passed = self.total - before.total
        if passed <= 0:
            return None
        # CPU time as the time base: the wall clock may have been set.
        return max(0.0, self.busy - before.busy) / passed * cores


class DiskReading(msgspec.Struct, frozen=True, kw_only=True):
    """The filesystem of the agent's root directory."""

    total_bytes: int
    used_bytes: int
    available_bytes: int
    """For unprivileged users: some may be reserved for root."""
    inodes: int
    """0 if the filesystem does not count them."""
    inodes_free: int
    device: str = ""
    """As `/dev/vda`; empty if unknown."""


class InterfaceReading(msgspec.Struct, frozen=True, kw_only=True):
    """Counters of a network interface since it was created."""

    name: str
    received_bytes: int
    received_packets: int
    receive_errors: int
    receive_dropped: int
    sent_bytes: int
    sent_packets: int
    send_errors: int
    send_dropped: int


class MachineReading(msgspec.Struct, frozen=True, kw_only=True):
    """Usage of the machine; None where unknown."""

    cores: int
    cpu: CpuTimes
    memory_bytes: int
    memory_available_bytes: int
    pids: int
    """Processes and threads."""
    max_pids: int | None = None
    load: tuple[float, float, float] | None = None
    """Load average of the last 1, 5 and 15 minutes."""
    disk: DiskReading | None = None
    booted_at: int | None = None
    """Boot time, ns since the Unix epoch."""
    memory: MemoryUsage = NO_MEMORY_USAGE
    pressure: Pressures = NO_PRESSURES
    interfaces: tuple[InterfaceReading, ...] = ()


class MachineDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Details of the machine; None where unknown."""

    details: CgroupDetails
    physical_cores: int | None = None
    sockets: int | None = None


class SystemUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Usage of a part of the node that is no pod: in the API, a system container."""

    started_at: int
    """Since when it has been measured, ns since the Unix epoch."""
    usage: Usage


class UsageSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Usage of the node and its pods at one moment."""

    at: int
    """Nanoseconds since the Unix epoch."""
    monotonic: int = 0
    """Monotonic time in nanoseconds."""
    machine: MachineReading
    node: Usage
    pods: Mapping[PodUID, Usage]
    containers: Mapping[PodUID, Mapping[str, Usage]] = {}
    """Running containers by name, if the runtime reports them."""
    disks: Mapping[PodUID, PodDiskUsage] = {}
    """Disk usage of pods, if the runtime reports it."""
    system: Mapping[str, SystemUsage] = {}
    """System containers by name."""


def node_usage(machine: MachineReading, before: MachineReading | None, at: int) -> Usage:
    """Usage of the node; CPU cores are the mean since the reading `before`."""
    cores = machine.cpu.cores_since(before.cpu, machine.cores) if before else None
    disk = machine.disk
    return Usage(
        at=at,
        cpu_seconds=machine.cpu.busy,
        cpu_cores=cores,
        memory_bytes=machine.memory_bytes - machine.memory_available_bytes,
        disk_bytes=None if disk is None else disk.used_bytes,
        pids=machine.pids,
        memory=structs.replace(machine.memory, limit_bytes=machine.memory_bytes),
        pressure=machine.pressure,
    )


def usage_sample(snapshot: UsageSnapshot) -> NodeUsageSample:
    """Return the usage of the node in a snapshot, by resource."""
    machine, node, disk = snapshot.machine, snapshot.node, snapshot.machine.disk
    used: dict[str, float | None] = {
        CPU: node.cpu_cores,
        MEMORY: node.memory_bytes,
        PIDS: node.pids,
    }
    capacity: dict[str, float | None] = {
        CPU: machine.cores,
        MEMORY: machine.memory_bytes,
        PIDS: machine.max_pids,
    }
    if disk is not None:
        used[DISK] = disk.used_bytes
        # As df does: space reserved for root counts neither as used nor as available.
        capacity[DISK] = disk.used_bytes + disk.available_bytes
    if disk is not None and disk.inodes:
        used[INODES] = disk.inodes - disk.inodes_free
        capacity[INODES] = disk.inodes
    return NodeUsageSample(at=snapshot.monotonic, used=_known(used), capacity=_known(capacity))


def _known(amounts: Mapping[str, float | None]) -> dict[str, float]:
    return {name: float(amount) for name, amount in amounts.items() if amount is not None}


def with_cpu_cores(usage: Usage, before: Usage | None) -> Usage:
    """The usage with its CPU rate since the reading `before`, if that is known."""
    if before is None or usage.cpu_seconds is None or before.cpu_seconds is None:
        return usage
    if usage.at <= before.at or usage.cpu_seconds < before.cpu_seconds:
        return usage
    cores = (usage.cpu_seconds - before.cpu_seconds) / (usage.at - before.at) * 1e9
    return structs.replace(usage, cpu_cores=cores)
