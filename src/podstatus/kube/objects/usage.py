"""Resource usage of a machine, pod or container, as a value."""

from collections.abc import Mapping

import msgspec

from podstatus.base.pressure import NO_PRESSURES, Pressures


class MemoryUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Memory in detail; None if a value is not known."""

    usage_bytes: int | None = None
    """All memory in use, including page cache that can be reclaimed at once."""
    rss_bytes: int | None = None
    """Anonymous memory."""
    limit_bytes: int | None = None
    """None also if there is no limit."""
    page_faults: int | None = None
    """Cumulative number of page faults, minor and major."""
    major_page_faults: int | None = None
    """Cumulative number of page faults that had to wait for a disk."""
    swap_bytes: int | None = None
    swap_limit_bytes: int | None = None
    """None also if there is no limit."""


NO_MEMORY_USAGE = MemoryUsage()


class CpuThrottling(msgspec.Struct, frozen=True, gc=False):
    """Enforcement periods of a CPU limit since the container started."""

    periods: int
    """Elapsed periods in which the container had something to run."""
    throttled: int
    """Those in which it used up its quota before their end."""


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Resource usage at one time; None if a value is not known."""

    at: int
    """When it was measured, in nanoseconds since the Unix epoch."""
    cpu_seconds: float | None = None
    """Cumulative CPU time of all processors."""
    cpu_cores: float | None = None
    """Average number of busy processors since the previous measurement."""
    memory_bytes: int | None = None
    """The working set: memory that cannot be reclaimed at once."""
    disk_bytes: int | None = None
    pids: int | None = None
    """Processes and threads."""
    processes: int | None = None
    """Processes without their threads."""
    memory: MemoryUsage = NO_MEMORY_USAGE
    pressure: Pressures = NO_PRESSURES
    throttling: CpuThrottling | None = None
    """None also if no CPU limit has been enforced yet."""


class DiskUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What a tree of files uses of its filesystem."""

    bytes: int = 0
    """Allocated blocks; a file with several names counts once."""
    inodes: int = 0
    is_complete: bool = True
    """False: it uses at least this much; some of it is unreadable, or has too many entries."""

    def __add__(self, other: "DiskUsage") -> "DiskUsage":
        return DiskUsage(
            bytes=self.bytes + other.bytes,
            inodes=self.inodes + other.inodes,
            is_complete=self.is_complete and other.is_complete,
        )


class ContainerDiskUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Disk usage of a container."""

    rootfs: DiskUsage = DiskUsage()
    """The files that the newest attempt has written outside of volumes."""
    logs: DiskUsage = DiskUsage()
    """The logs of all attempts."""


class PodDiskUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Disk usage of a pod at one time."""

    at: int
    """When it was measured, in nanoseconds since the Unix epoch."""
    total: DiskUsage
    """Everything on disk, including older attempts and the records of the runtime."""
    containers: Mapping[str, ContainerDiskUsage] = {}
    """By container name."""
    volumes: Mapping[str, DiskUsage] = {}
    """By volume name: the volumes that the runtime created on the node's disk."""


class NodeUsageReport(msgspec.Struct, frozen=True, kw_only=True):
    """The usage of a node as an API reports it; amounts that were not measured are missing."""

    timestamp: str
    """When it was measured, by the clock of the node; the same text: the same measurement."""
    used: Mapping[str, float]
    """By resource: CPU in cores, memory and disk in bytes."""
    capacity: Mapping[str, float] = {}
    """How much can be used at most, where the Node does not say it."""
