"""Readings of the machine, as values."""

from collections.abc import Mapping

import msgspec

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.usage import PodDiskUsage, Usage


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


class UsageSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Usage of the node and its pods at one moment."""

    at: int
    """Nanoseconds since the Unix epoch."""
    machine: MachineReading
    node: Usage
    pods: Mapping[PodUID, Usage]
    containers: Mapping[PodUID, Mapping[str, Usage]] = {}
    """Running containers by name, if the runtime reports them."""
    disks: Mapping[PodUID, PodDiskUsage] = {}
    """Disk usage of pods, if the runtime reports it."""


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
    )
