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
    LEAST_SHARES,
    MOST_SHARES,
    PERIOD,
    Limits,
    cpu_limit_of,
    cpu_request_of,
    memory_limit_of,
)

_LEAST_WEIGHT, _MOST_WEIGHT = 1, 10_000


class Version(Enum):
    """Of the kernel's interface."""

    V1 = 1
    V2 = 2


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What to write where."""

    controller: str
    file: str
    text: str
    needed: bool = False
    """Whether a limit that was asked for depends on it; the others are done where they can be."""


def settings_for(version: Version, limits: Limits, *, container: bool) -> Sequence[Setting]:
    """All that is to be written, in this order, for a container or for what holds some."""
    alone = _ALONE_V2 if container and version is Version.V2 else ()
    return (*cpu_settings(version, limits), *memory_settings(version, limits), *alone)


def cpu_settings(version: Version, limits: Limits) -> Sequence[Setting]:
    """What is to be written for the processors."""
    return _cpu_v1(limits) if version is Version.V1 else _cpu_v2(limits)


def memory_settings(version: Version, limits: Limits) -> Sequence[Setting]:
    """What is to be written for memory: of one that lowers, in this order; else the other way."""
    return _memory_v1(limits) if version is Version.V1 else _memory_v2(limits)


def oom_events_file(version: Version) -> str:
    """Where a line says how many were killed because memory was short: `oom_kill N`."""
    return "memory.oom_control" if version is Version.V1 else "memory.events"


def weight_of(shares: int) -> int:
    """Shares of version 1 as a weight of version 2.

    Upstream: getCPUWeight, pkg/kubelet/cm/cgroup_manager_linux.go v1.36.4.
    """
    weights, others = _MOST_WEIGHT - _LEAST_WEIGHT, MOST_SHARES - LEAST_SHARES
    return _LEAST_WEIGHT + (shares - LEAST_SHARES) * weights // others


_ALONE_V2 = (
    Setting(controller="memory", file="memory.swap.max", text="0"),
    # Upstream: singleProcessOOMKill is off by default where there is version 2.
    Setting(controller="memory", file="memory.oom.group", text="1"),
)


def _cpu_v1(limits: Limits) -> Sequence[Setting]:
    settings = [Setting(controller="cpu", file="cpu.shares", text=str(limits.cpu_shares))]
    if limits.cpu_quota is not None:
        # The period first: a quota must fit into the parent's, measured by the same.
        settings += (
            Setting(controller="cpu", file="cpu.cfs_period_us", text=str(PERIOD), needed=True),
            Setting(
                controller="cpu", file="cpu.cfs_quota_us", text=str(limits.cpu_quota), needed=True
            ),
        )
    return settings


def _memory_v1(limits: Limits) -> Sequence[Setting]:
    if limits.memory_bytes is None:
        return ()
    most = str(limits.memory_bytes)
    return (
        Setting(controller="memory", file="memory.limit_in_bytes", text=most, needed=True),
        # With swap it must not be more either. Not every kernel counts swap.
        Setting(controller="memory", file="memory.memsw.limit_in_bytes", text=most),
    )


def _cpu_v2(limits: Limits) -> Sequence[Setting]:
    weight = str(weight_of(limits.cpu_shares))
    settings = [Setting(controller="cpu", file="cpu.weight", text=weight)]
    if limits.cpu_quota is not None:
        quota = f"{limits.cpu_quota} {PERIOD}"
        settings.append(Setting(controller="cpu", file="cpu.max", text=quota, needed=True))
    return settings


def _memory_v2(limits: Limits) -> Sequence[Setting]:
    if limits.memory_bytes is None:
        return ()
    most = str(limits.memory_bytes)
    return (Setting(controller="memory", file="memory.max", text=most, needed=True),)


ReadFile = Callable[[str, str], str | None]
"""What is in a file, by controller and name; None if it cannot be read."""

_UNLIMITED = 2**62
"""From here on a limit of version 1 is none: for none the kernel shows its largest number."""
_LARGEST_PAGE = 65_536
"""The kernel counts whole pages, so it may show up to this much less than was written."""


class CgroupReading(msgspec.Struct, frozen=True, kw_only=True):
    """What all in a cgroup uses; None where nobody counts."""

    cpu_seconds: float | None = None
    memory_bytes: int | None = None
    pids: int | None = None


def facts_from(version: Version, read: ReadFile, asked: Limits | None) -> ResourceFacts:
    """What is in force. Where that is what was asked for, it is told in those words.

    Memory is rounded to pages, and a weight stands for many requests: what is read is not what
    was written. Without knowing what that was, nothing is said of a weight.
    """
    return ResourceFacts(
        cpu_request=_cpu_request(version, read, asked),
        cpu_limit=_cpu_limit(version, read),
        memory_limit=_memory_limit(version, read, asked),
    )


def quota_from(version: Version, read: ReadFile) -> int | None:
    """The quota in force, in microseconds of a period of ours; None for no limit."""
    quota, period = _quota(version, read)
    return None if quota is None else quota * PERIOD // period


def memory_from(version: Version, read: ReadFile) -> int | None:
    """The limit of memory in force, in bytes; None for no limit."""
    found = _number(read("memory", _of_both(version, "memory.limit_in_bytes", "memory.max")))
    return None if found is None or found >= _UNLIMITED else found


def memory_used(version: Version, read: ReadFile) -> int | None:
    """All memory that counts against a limit, files that could be given back included."""
    return _number(read("memory", _of_both(version, "memory.usage_in_bytes", "memory.current")))


def usage_from(version: Version, read: ReadFile) -> CgroupReading:
    """What is used, counted as the kubelet's cAdvisor does."""
    return CgroupReading(
        cpu_seconds=_cpu_seconds(version, read),
        memory_bytes=_working_set(version, read),
        pids=_number(read("pids", "pids.current")),
    )


def field_of(text: str | None, name: str) -> int | None:
    """The number behind a name, in a file of lines `name number`."""
    for line in (text or "").splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return _number(value)
    return None


def _cpu_request(version: Version, read: ReadFile, asked: Limits | None) -> Quantity | None:
    if version is Version.V1:
        shares = _number(read("cpu", "cpu.shares"))
        return None if shares is None else cpu_request_of(shares)
    weight = _number(read("cpu", "cpu.weight"))
    if asked is None or weight != weight_of(asked.cpu_shares):
        return None
    return cpu_request_of(asked.cpu_shares)


def _cpu_limit(version: Version, read: ReadFile) -> Quantity | None:
    return cpu_limit_of(*_quota(version, read))


def _quota(version: Version, read: ReadFile) -> tuple[int | None, int]:
    if version is Version.V1:
        quota = _number(read("cpu", "cpu.cfs_quota_us"))
        period = _number(read("cpu", "cpu.cfs_period_us"))
    else:
        most, _, each = (read("cpu", "cpu.max") or "").partition(" ")
        quota, period = _number(most), _number(each)
    limited = quota is not None and quota >= 0
    return quota if limited else None, period or PERIOD


def _memory_limit(version: Version, read: ReadFile, asked: Limits | None) -> Quantity | None:
    found = memory_from(version, read)
    if found is None:
        return None
    wanted = None if asked is None else asked.memory_bytes
    if wanted is not None and found <= wanted < found + _LARGEST_PAGE:
        return memory_limit_of(wanted)
    return memory_limit_of(found)


def _cpu_seconds(version: Version, read: ReadFile) -> float | None:
    if version is Version.V1:
        nanos = _number(read("cpuacct", "cpuacct.usage"))
        return None if nanos is None else nanos / 1e9
    micros = field_of(read("cpu", "cpu.stat"), "usage_usec")
    return None if micros is None else micros / 1e6


def _working_set(version: Version, read: ReadFile) -> int | None:
    """What cannot be given back at once: without files that nobody has read for a while."""
    used = memory_used(version, read)
    if used is None:
        return None
    name = _of_both(version, "total_inactive_file", "inactive_file")
    idle = field_of(read("memory", "memory.stat"), name)
    return max(0, used - (idle or 0))


def _of_both(version: Version, first: str, second: str) -> str:
    return first if version is Version.V1 else second


def _number(text: str | None) -> int | None:
    try:
        return int(text or "")
    except ValueError:
        return None  # `max`, or nothing
