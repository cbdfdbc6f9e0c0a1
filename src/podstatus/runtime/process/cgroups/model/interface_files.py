"""The interface files of a cgroup: the values to write for limits, and the usage they report.

| | version 1 | version 2 |
|---|---|---|
| CPU shares | cpu.shares | cpu.weight |
| CPU limit | cpu.cfs_period_us, cpu.cfs_quota_us | cpu.max |
| memory limit | memory.limit_in_bytes | memory.max |
| no swap | memory.memsw.limit_in_bytes | memory.swap.max |
| OOM kills the whole container | - | memory.oom.group |
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum

import msgspec
from msgspec import structs

from podstatus.base.pressure import NO_PRESSURES, Pressures, parse_pressure
from podstatus.kube.objects.runtime_facts import ResourceFacts
from podstatus.kube.objects.usage import NO_MEMORY_USAGE, CpuThrottling, MemoryUsage
from podstatus.kube.scalars.quantity import Quantity
from podstatus.runtime.cpu_and_memory_limits import (
    CPU_PERIOD_MICROSECONDS,
    MAX_SHARES,
    MIN_SHARES,
    CgroupLimits,
    bytes_to_memory_limit,
    quota_to_cpu_limit,
    shares_to_cpu_request,
)

MIN_WEIGHT, MAX_WEIGHT = 1, 10_000


class CgroupVersion(Enum):
    """Version of the kernel's cgroup interface."""

    V1 = 1
    V2 = 2


class CgroupSetting(msgspec.Struct, frozen=True, kw_only=True):
    """A value to write to an interface file."""

    controller: str
    file: str
    text: str
    required: bool = False
    """Whether a requested limit depends on it; others are best effort."""


def settings_for(
    version: CgroupVersion, limits: CgroupLimits, *, container: bool
) -> Sequence[CgroupSetting]:
    """Return all settings of a container's cgroup or of a parent cgroup, in write order."""
    container_only = _CONTAINER_SETTINGS_V2 if container and version is CgroupVersion.V2 else ()
    return (*cpu_settings(version, limits), *memory_settings(version, limits), *container_only)


def cpu_settings(version: CgroupVersion, limits: CgroupLimits) -> Sequence[CgroupSetting]:
    """Return the CPU settings, in write order."""
    return _cpu_v1(limits) if version is CgroupVersion.V1 else _cpu_v2(limits)


def memory_settings(version: CgroupVersion, limits: CgroupLimits) -> Sequence[CgroupSetting]:
    """Return the memory settings, in write order for a decrease; reverse it for an increase."""
    return _memory_limits_v1(limits) if version is CgroupVersion.V1 else _memory_limits_v2(limits)


def oom_events_file(version: CgroupVersion) -> str:
    """Return the file with a line `oom_kill N`, the number of OOM kills."""
    return "memory.oom_control" if version is CgroupVersion.V1 else "memory.events"


def shares_to_weight(shares: int) -> int:
    """Convert CPU shares of version 1 to a CPU weight of version 2.

    Upstream: getCPUWeight, pkg/kubelet/cm/cgroup_manager_linux.go v1.36.4.
    """
    weight_range, share_range = MAX_WEIGHT - MIN_WEIGHT, MAX_SHARES - MIN_SHARES
    return MIN_WEIGHT + (shares - MIN_SHARES) * weight_range // share_range


_CONTAINER_SETTINGS_V2 = (
    CgroupSetting(controller="memory", file="memory.swap.max", text="0"),
    # Upstream: singleProcessOOMKill is off by default with version 2.
    CgroupSetting(controller="memory", file="memory.oom.group", text="1"),
)


def _cpu_v1(limits: CgroupLimits) -> Sequence[CgroupSetting]:
    settings = [CgroupSetting(controller="cpu", file="cpu.shares", text=str(limits.cpu_shares))]
    if limits.cpu_quota is not None:
        # The period first: a quota must not exceed the parent's, relative to the same period.
        settings += (
            CgroupSetting(
                controller="cpu",
                file="cpu.cfs_period_us",
                text=str(CPU_PERIOD_MICROSECONDS),
                required=True,
            ),
            CgroupSetting(
                controller="cpu", file="cpu.cfs_quota_us", text=str(limits.cpu_quota), required=True
            ),
        )
    return settings


def _memory_limits_v1(limits: CgroupLimits) -> Sequence[CgroupSetting]:
    if limits.memory_bytes is None:
        return ()
    limit = str(limits.memory_bytes)
    return (
        CgroupSetting(controller="memory", file="memory.limit_in_bytes", text=limit, required=True),
        # Memory plus swap must not exceed it either. Not every kernel counts swap.
        CgroupSetting(controller="memory", file="memory.memsw.limit_in_bytes", text=limit),
    )


def _cpu_v2(limits: CgroupLimits) -> Sequence[CgroupSetting]:
    weight = str(shares_to_weight(limits.cpu_shares))
    settings = [CgroupSetting(controller="cpu", file="cpu.weight", text=weight)]
    if limits.cpu_quota is not None:
        quota = f"{limits.cpu_quota} {CPU_PERIOD_MICROSECONDS}"
        settings.append(CgroupSetting(controller="cpu", file="cpu.max", text=quota, required=True))
    return settings


def _memory_limits_v2(limits: CgroupLimits) -> Sequence[CgroupSetting]:
    if limits.memory_bytes is None:
        return ()
    limit = str(limits.memory_bytes)
    return (CgroupSetting(controller="memory", file="memory.max", text=limit, required=True),)


ReadFile = Callable[[str, str], str | None]
"""Returns the contents of a file, by controller and name; None if it is unreadable."""
PRESSURE = "pressure"
"""Instead of a controller: the hierarchy of version 2, which may be mounted besides version 1."""

_UNLIMITED = 2**62
"""A version 1 limit from here on means unlimited: the kernel then shows its largest number."""
_MAX_PAGE_BYTES = 65_536
"""The kernel rounds to whole pages, so it may show up to this much less than was written."""


class CgroupUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Usage of a cgroup; None where it is not counted."""

    cpu_seconds: float | None = None
    memory_bytes: int | None = None
    """The working set."""
    memory: MemoryUsage = NO_MEMORY_USAGE
    pids: int | None = None
    """Processes and threads."""
    processes: int | None = None
    pressure: Pressures = NO_PRESSURES
    throttling: CpuThrottling | None = None


def read_resource_facts(
    version: CgroupVersion, read: ReadFile, requested: CgroupLimits | None
) -> ResourceFacts:
    """Return the resources in force; values equal to the requested ones are returned exactly.

    Memory is rounded to pages, and one weight corresponds to many requests: the values read differ
    from those written. Without `requested`, no CPU request is derived from a weight.
    """
    return ResourceFacts(
        cpu_request=_cpu_request(version, read, requested),
        cpu_limit=quota_to_cpu_limit(*read_quota(version, read)),
        memory_limit=_memory_limit(version, read, requested),
    )


def read_cpu_quota(version: CgroupVersion, read: ReadFile) -> int | None:
    """Return the quota in force, in microseconds per CPU_PERIOD_MICROSECONDS; None: unlimited."""
    quota, period = read_quota(version, read)
    return None if quota is None else quota * CPU_PERIOD_MICROSECONDS // period


def read_memory_limit(version: CgroupVersion, read: ReadFile) -> int | None:
    """Return the memory limit in force, in bytes; None: unlimited."""
    file = _by_version(version, "memory.limit_in_bytes", "memory.max")
    return limited(parse_int(read("memory", file)))


def read_memory_usage(version: CgroupVersion, read: ReadFile) -> int | None:
    """Return the memory that counts against the limit, including reclaimable page cache."""
    return parse_int(
        read("memory", _by_version(version, "memory.usage_in_bytes", "memory.current"))
    )


def read_usage(version: CgroupVersion, read: ReadFile) -> CgroupUsage:
    """Return the usage, computed as in the kubelet's cAdvisor, without the processes."""
    stat = flat_keyed(read("memory", "memory.stat"))
    memory = _memory_v1(stat) if version is CgroupVersion.V1 else _memory_v2(stat, read)
    memory = structs.replace(memory, usage_bytes=read_memory_usage(version, read))
    cpu_stat = flat_keyed(read("cpu", "cpu.stat"))
    return CgroupUsage(
        cpu_seconds=_cpu_seconds(version, read, cpu_stat),
        memory_bytes=_working_set(version, memory.usage_bytes, stat),
        memory=memory,
        pids=parse_int(read("pids", "pids.current")),
        pressure=Pressures(
            cpu=parse_pressure(read(PRESSURE, "cpu.pressure")),
            memory=parse_pressure(read(PRESSURE, "memory.pressure")),
            io=parse_pressure(read(PRESSURE, "io.pressure")),
        ),
        throttling=_throttling(cpu_stat),
    )


def flat_keyed(text: str | None) -> Mapping[str, int]:
    """Parse a file of lines `key number`."""
    pairs = (line.partition(" ") for line in (text or "").splitlines())
    return {key: int(value) for key, _, value in pairs if value.isdecimal()}


def _cpu_request(
    version: CgroupVersion, read: ReadFile, requested: CgroupLimits | None
) -> Quantity | None:
    if version is CgroupVersion.V1:
        shares = parse_int(read("cpu", "cpu.shares"))
        return None if shares is None else shares_to_cpu_request(shares)
    weight = parse_int(read("cpu", "cpu.weight"))
    if requested is None or weight != shares_to_weight(requested.cpu_shares):
        return None
    return shares_to_cpu_request(requested.cpu_shares)


def read_quota(version: CgroupVersion, read: ReadFile) -> tuple[int | None, int]:
    """Return quota and period in microseconds; no quota: unlimited."""
    if version is CgroupVersion.V1:
        quota = parse_int(read("cpu", "cpu.cfs_quota_us"))
        period = parse_int(read("cpu", "cpu.cfs_period_us"))
    else:
        quota_text, _, period_text = (read("cpu", "cpu.max") or "").partition(" ")
        quota, period = parse_int(quota_text), parse_int(period_text)
    limited = quota is not None and quota >= 0
    return quota if limited else None, period or CPU_PERIOD_MICROSECONDS


def _memory_limit(
    version: CgroupVersion, read: ReadFile, requested: CgroupLimits | None
) -> Quantity | None:
    limit = read_memory_limit(version, read)
    if limit is None:
        return None
    desired = None if requested is None else requested.memory_bytes
    if desired is not None and limit <= desired < limit + _MAX_PAGE_BYTES:
        return bytes_to_memory_limit(desired)
    return bytes_to_memory_limit(limit)


def _cpu_seconds(
    version: CgroupVersion, read: ReadFile, cpu_stat: Mapping[str, int]
) -> float | None:
    if version is CgroupVersion.V1:
        nanos = parse_int(read("cpuacct", "cpuacct.usage"))
        return None if nanos is None else nanos / 1e9
    micros = cpu_stat.get("usage_usec")
    return None if micros is None else micros / 1e6


def _throttling(cpu_stat: Mapping[str, int]) -> CpuThrottling | None:
    """Return the periods, which the kernel counts under a limit only; None: there were none."""
    periods = cpu_stat.get("nr_periods")
    return CpuThrottling(periods, cpu_stat.get("nr_throttled", 0)) if periods else None


def _memory_v1(stat: Mapping[str, int]) -> MemoryUsage:
    """Return memory in detail: of all descendants, since the processes are in a child."""
    limit = limited(stat.get("hierarchical_memory_limit"))
    both = limited(stat.get("hierarchical_memsw_limit"))
    return MemoryUsage(
        rss_bytes=stat.get("total_rss"),
        limit_bytes=limit,
        page_faults=stat.get("total_pgfault"),
        major_page_faults=stat.get("total_pgmajfault"),
        swap_bytes=stat.get("total_swap"),
        swap_limit_bytes=None if limit is None or both is None else max(0, both - limit),
    )


def _memory_v2(stat: Mapping[str, int], read: ReadFile) -> MemoryUsage:
    return MemoryUsage(
        rss_bytes=stat.get("anon"),
        limit_bytes=limited(parse_int(read("memory", "memory.max"))),
        page_faults=stat.get("pgfault"),
        major_page_faults=stat.get("pgmajfault"),
        swap_bytes=parse_int(read("memory", "memory.swap.current")),
        swap_limit_bytes=limited(parse_int(read("memory", "memory.swap.max"))),
    )


def limited(limit: int | None) -> int | None:
    """Return the limit of version 1; None if it means unlimited."""
    return None if limit is None or limit >= _UNLIMITED else limit


def _working_set(version: CgroupVersion, used: int | None, stat: Mapping[str, int]) -> int | None:
    """Return memory usage without inactive page cache, which can be reclaimed at once."""
    if used is None:
        return None
    inactive = stat.get(_by_version(version, "total_inactive_file", "inactive_file"), 0)
    return max(0, used - inactive)


def _by_version(version: CgroupVersion, first: str, second: str) -> str:
    return first if version is CgroupVersion.V1 else second


def parse_int(text: str | None) -> int | None:
    """Return the number in a file; None if there is none."""
    try:
        return int(text or "")
    except ValueError:
        return None  # `max`, or empty
