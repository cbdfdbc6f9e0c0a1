"""What was read of the machine at one moment, as values."""

from collections.abc import Mapping

import msgspec

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.usage import Usage


class CpuTimes(msgspec.Struct, frozen=True):
    """Seconds of all processors together since the machine started."""

    busy: float
    total: float

    def cores_since(self, before: "CpuTimes", cores: int) -> float | None:
        """How many processors were busy since then; None if no time has passed."""
        passed = self.total - before.total
        if passed <= 0:
            return None
        # By the processors' own time: the clock on the wall may have been set.
        return max(0.0, self.busy - before.busy) / passed * cores


class DiskReading(msgspec.Struct, frozen=True, kw_only=True):
    """The filesystem that holds what the agent keeps."""

    total_bytes: int
    used_bytes: int
    available_bytes: int
    """To users without privileges: some may be kept for root."""
    inodes: int
    """0 if the filesystem does not count them."""
    inodes_free: int


class MachineReading(msgspec.Struct, frozen=True, kw_only=True):
    """The machine; None where nobody knows."""

    cores: int
    cpu: CpuTimes
    memory_bytes: int
    memory_available_bytes: int
    pids: int
    """Threads count."""
    max_pids: int | None = None
    load: tuple[float, float, float] | None = None
    """How many wanted a processor, in the mean of the last 1, 5 and 15 minutes."""
    disk: DiskReading | None = None
    booted_at: int | None = None
    """When it was started, in nanoseconds since the Unix epoch."""


class UsageSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What node and pods use, at one moment."""

    at: int
    """In nanoseconds since the Unix epoch."""
    machine: MachineReading
    node: Usage
    pods: Mapping[PodUID, Usage]
    containers: Mapping[PodUID, Mapping[str, Usage]] = {}
    """Those that run, by name, where the runtime can tell."""

    def age(self, now: int) -> float:
        """Seconds since it was taken."""
        return max(0, now - self.at) / 1e9


def node_usage(machine: MachineReading, before: MachineReading | None, at: int) -> Usage:
    """What is used of the machine; how busy it is shows against the reading before."""
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
