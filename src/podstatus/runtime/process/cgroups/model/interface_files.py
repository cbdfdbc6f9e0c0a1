"""The interface files of a cgroup: what limits write to them, and what they say is used.

| | version 1 | version 2 |
|---|---|---|
| share of the processors | cpu.shares | cpu.weight |
| limit of the processors | cpu.cfs_period_us, cpu.cfs_quota_us | cpu.max |
| limit of memory | memory.limit_in_bytes | memory.max |
| no swap | memory.memsw.limit_in_bytes | memory.swap.max |
| all of a container ends if one process is killed for memory | - | memory.oom.group |
"""

from collections.abc import Callable, Sequence
from enum import Enum

import msgspec

from podstatus.kube.objects.runtime_facts import ResourceFacts
from podstatus.kube.scalars.quantity import Quantity
from podstatus.runtime.resource_limits import (
    CPU_PERIOD_MICROSECONDS,
    MAX_SHARES,
    MIN_SHARES,
    CgroupLimits,
    bytes_to_memory_limit,
    quota_to_cpu_limit,
    shares_to_cpu_request,
)

_MIN_WEIGHT, _MAX_WEIGHT = 1, 10_000


class CgroupVersion(Enum):
    """Of the kernel's interface."""

    V1 = 1
    V2 = 2


class CgroupSetting(msgspec.Struct, frozen=True, kw_only=True):
    """What to write where."""

    controller: str
    file: str
    text: str
    required: bool = False
    """Whether a limit that was asked for depends on it; the others are done where they can be."""


def settings_for(
    version: CgroupVersion, limits: CgroupLimits, *, container: bool
) -> Sequence[CgroupSetting]:
    """All that is to be written, in this order, for a container or for what holds some."""
    alone = _CONTAINER_SETTINGS_V2 if container and version is CgroupVersion.V2 else ()
    return (*cpu_settings(version, limits), *memory_settings(version, limits), *alone)


def cpu_settings(version: CgroupVersion, limits: CgroupLimits) -> Sequence[CgroupSetting]:
    """What is to be written for the processors."""
    return _cpu_v1(limits) if version is CgroupVersion.V1 else _cpu_v2(limits)


def memory_settings(version: CgroupVersion, limits: CgroupLimits) -> Sequence[CgroupSetting]:
    """What is to be written for memory: of one that lowers, in this order; else the other way."""
    return _memory_v1(limits) if version is CgroupVersion.V1 else _memory_v2(limits)


def oom_events_file(version: CgroupVersion) -> str:
    """Where a line says how many were killed because memory was short: `oom_kill N`."""
    return "memory.oom_control" if version is CgroupVersion.V1 else "memory.events"


def shares_to_weight(shares: int) -> int:
    """Shares of version 1 as a weight of version 2.

    Upstream: getCPUWeight, pkg/kubelet/cm/cgroup_manager_linux.go v1.36.4.
    """
    weights, others = _MAX_WEIGHT - _MIN_WEIGHT, MAX_SHARES - MIN_SHARES
    return _MIN_WEIGHT + (shares - MIN_SHARES) * weights // others


_CONTAINER_SETTINGS_V2 = (
    CgroupSetting(controller="memory", file="memory.swap.max", text="0"),
    # Upstream: singleProcessOOMKill is off by default where there is version 2.
    CgroupSetting(controller="memory", file="memory.oom.group", text="1"),
)


def _cpu_v1(limits: CgroupLimits) -> Sequence[CgroupSetting]:
    settings = [CgroupSetting(controller="cpu", file="cpu.shares", text=str(limits.cpu_shares))]
    if limits.cpu_quota is not None:
        # The period first: a quota must fit into the parent's, measured by the same.
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


def _memory_v1(limits: CgroupLimits) -> Sequence[CgroupSetting]:
    if limits.memory_bytes is None:
        return ()
    most = str(limits.memory_bytes)
    return (
        CgroupSetting(controller="memory", file="memory.limit_in_bytes", text=most, required=True),
        # With swap it must not be more either. Not every kernel counts swap.
        CgroupSetting(controller="memory", file="memory.memsw.limit_in_bytes", text=most),
    )


def _cpu_v2(limits: CgroupLimits) -> Sequence[CgroupSetting]:
    weight = str(shares_to_weight(limits.cpu_shares))
    settings = [CgroupSetting(controller="cpu", file="cpu.weight", text=weight)]
    if limits.cpu_quota is not None:
        quota = f"{limits.cpu_quota} {CPU_PERIOD_MICROSECONDS}"
        settings.append(CgroupSetting(controller="cpu", file="cpu.max", text=quota, required=True))
    return settings


def _memory_v2(limits: CgroupLimits) -> Sequence[CgroupSetting]:
    if limits.memory_bytes is None:
        return ()
    most = str(limits.memory_bytes)
    return (CgroupSetting(controller="memory", file="memory.max", text=most, required=True),)


ReadFile = Callable[[str, str], str | None]
"""What is in a file, by controller and name; None if it cannot be read."""

_UNLIMITED = 2**62
"""From here on a limit of version 1 is none: for none the kernel shows its largest number."""
_MAX_PAGE_BYTES = 65_536
"""The kernel counts whole pages, so it may show up to this much less than was written."""


class CgroupUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What all in a cgroup uses; None where nobody counts."""

    cpu_seconds: float | None = None
    memory_bytes: int | None = None
    pids: int | None = None


def read_resource_facts(
    version: CgroupVersion, read: ReadFile, requested: CgroupLimits | None
) -> ResourceFacts:
    """What is in force. Where that is what was asked for, it is told in those words.

    Memory is rounded to pages, and a weight stands for many requests: what is read is not what
    was written. Without knowing what that was, nothing is said of a weight.
    """
    return ResourceFacts(
        cpu_request=_cpu_request(version, read, requested),
        cpu_limit=_cpu_limit(version, read),
        memory_limit=_memory_limit(version, read, requested),
    )


def read_cpu_quota(version: CgroupVersion, read: ReadFile) -> int | None:
    """The quota in force, in microseconds of a period of ours; None for no limit."""
    quota, period = _quota(version, read)
    return None if quota is None else quota * CPU_PERIOD_MICROSECONDS // period


def read_memory_limit(version: CgroupVersion, read: ReadFile) -> int | None:
    """The limit of memory in force, in bytes; None for no limit."""
    found = _parse_int(read("memory", _by_version(version, "memory.limit_in_bytes", "memory.max")))
    return None if found is None or found >= _UNLIMITED else found


def read_memory_usage(version: CgroupVersion, read: ReadFile) -> int | None:
    """All memory that counts against a limit, files that could be given back included."""
    return _parse_int(
        read("memory", _by_version(version, "memory.usage_in_bytes", "memory.current"))
    )


def read_usage(version: CgroupVersion, read: ReadFile) -> CgroupUsage:
    """What is used, counted as the kubelet's cAdvisor does."""
    return CgroupUsage(
        cpu_seconds=_cpu_seconds(version, read),
        memory_bytes=_working_set(version, read),
        pids=_parse_int(read("pids", "pids.current")),
    )


def flat_keyed_value(text: str | None, name: str) -> int | None:
    """The number behind a name, in a file of lines `name number`."""
    for line in (text or "").splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return _parse_int(value)
    return None


def _cpu_request(
    version: CgroupVersion, read: ReadFile, requested: CgroupLimits | None
) -> Quantity | None:
    if version is CgroupVersion.V1:
        shares = _parse_int(read("cpu", "cpu.shares"))
        return None if shares is None else shares_to_cpu_request(shares)
    weight = _parse_int(read("cpu", "cpu.weight"))
    if requested is None or weight != shares_to_weight(requested.cpu_shares):
        return None
    return shares_to_cpu_request(requested.cpu_shares)


def _cpu_limit(version: CgroupVersion, read: ReadFile) -> Quantity | None:
    return quota_to_cpu_limit(*_quota(version, read))


def _quota(version: CgroupVersion, read: ReadFile) -> tuple[int | None, int]:
    if version is CgroupVersion.V1:
        quota = _parse_int(read("cpu", "cpu.cfs_quota_us"))
        period = _parse_int(read("cpu", "cpu.cfs_period_us"))
    else:
        most, _, each = (read("cpu", "cpu.max") or "").partition(" ")
        quota, period = _parse_int(most), _parse_int(each)
    limited = quota is not None and quota >= 0
    return quota if limited else None, period or CPU_PERIOD_MICROSECONDS


def _memory_limit(
    version: CgroupVersion, read: ReadFile, requested: CgroupLimits | None
) -> Quantity | None:
    found = read_memory_limit(version, read)
    if found is None:
        return None
    wanted = None if requested is None else requested.memory_bytes
    if wanted is not None and found <= wanted < found + _MAX_PAGE_BYTES:
        return bytes_to_memory_limit(wanted)
    return bytes_to_memory_limit(found)


def _cpu_seconds(version: CgroupVersion, read: ReadFile) -> float | None:
    if version is CgroupVersion.V1:
        nanos = _parse_int(read("cpuacct", "cpuacct.usage"))
        return None if nanos is None else nanos / 1e9
    micros = flat_keyed_value(read("cpu", "cpu.stat"), "usage_usec")
    return None if micros is None else micros / 1e6


def _working_set(version: CgroupVersion, read: ReadFile) -> int | None:
    """What cannot be given back at once: without files that nobody has read for a while."""
    used = read_memory_usage(version, read)
    if used is None:
        return None
    name = _by_version(version, "total_inactive_file", "inactive_file")
    idle = flat_keyed_value(read("memory", "memory.stat"), name)
    return max(0, used - (idle or 0))


def _by_version(version: CgroupVersion, first: str, second: str) -> str:
    return first if version is CgroupVersion.V1 else second


def _parse_int(text: str | None) -> int | None:
    try:
        return int(text or "")
    except ValueError:
        return None  # `max`, or nothing
