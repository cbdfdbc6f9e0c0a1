"""What cAdvisor's metrics have beyond the usage of containers, as values.

All of it is None or empty if it is not known. Upstream: ContainerStats and ContainerSpec, cadvisor
v0.56.2, info/v1/container.go.
"""

from collections.abc import Mapping

import msgspec


class DeviceIo(msgspec.Struct, frozen=True, kw_only=True):
    """I/O on a block device."""

    device: str
    """As `/dev/vda`."""
    major: int
    minor: int
    bytes_by_operation: Mapping[str, int] = {}
    """`Read`, `Write`, with cgroup version 1 also `Sync`, `Async`, `Discard`, `Total`."""
    reads: int | None = None
    writes: int | None = None
    sectors_read: int | None = None
    sectors_written: int | None = None
    reads_merged: int | None = None
    writes_merged: int | None = None
    read_seconds: float | None = None
    write_seconds: float | None = None
    in_progress: int | None = None
    io_seconds: float | None = None
    """Time with at least one I/O in progress."""
    weighted_io_seconds: float | None = None
    """The same, multiplied by the number of I/Os in progress."""


class CpuDetails(msgspec.Struct, frozen=True, kw_only=True):
    """CPU time by mode, throttling, and limits in force."""

    user_seconds: float | None = None
    system_seconds: float | None = None
    periods: int | None = None
    """Elapsed enforcement periods. None, like the following, without a limit."""
    throttled_periods: int | None = None
    throttled_seconds: float | None = None
    burst_periods: int | None = None
    burst_seconds: float | None = None
    period: int | None = None
    """In microseconds."""
    quota: int | None = None
    """In microseconds per period; None: unlimited."""
    shares: int | None = None


class MemoryDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Memory by kind, and limits in force, in bytes."""

    cache: int | None = None
    mapped_file: int | None = None
    active_file: int | None = None
    inactive_file: int | None = None
    kernel: int | None = None
    max_usage: int | None = None
    limit_hits: int | None = None
    """How often the usage reached the limit."""
    oom_kills: int | None = None
    limit: int | None = None
    """0: unlimited, as is usual in these metrics."""
    swap_limit: int | None = None
    """0: unlimited."""
    reservation: int | None = None


class ProcessDetails(msgspec.Struct, frozen=True, kw_only=True):
    """What the processes of a container have in common."""

    file_descriptors: int | None = None
    sockets: int | None = None
    max_threads: int | None = None
    """0: unlimited."""
    max_open_files: int | None = None
    """Soft limit of the first process; -1: unlimited."""


class CgroupDetails(msgspec.Struct, frozen=True, kw_only=True):
    """A container, a pod or the machine at one time."""

    at: int
    """When it was measured, in nanoseconds since the Unix epoch."""
    cgroup: str
    """Path of the cgroup below that of all pods; of the machine `/`."""
    cpu: CpuDetails = CpuDetails()
    memory: MemoryDetails = MemoryDetails()
    processes: ProcessDetails = ProcessDetails()
    devices: tuple[DeviceIo, ...] = ()


class PodDetails(msgspec.Struct, frozen=True, kw_only=True):
    """The cgroups of a pod."""

    pod: CgroupDetails
    containers: Mapping[str, CgroupDetails]
    """Running containers, by name."""
