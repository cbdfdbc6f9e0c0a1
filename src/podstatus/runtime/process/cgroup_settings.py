"""What is written to the files of a cgroup so that limits hold, for both versions of them.

| | version 1 | version 2 |
|---|---|---|
| share of the processors | cpu.shares | cpu.weight |
| limit of the processors | cpu.cfs_period_us, cpu.cfs_quota_us | cpu.max |
| limit of memory | memory.limit_in_bytes | memory.max |
| no swap | memory.memsw.limit_in_bytes | memory.swap.max |
| all of a container ends if one process is killed for memory | - | memory.oom.group |
"""

from collections.abc import Sequence
from enum import Enum

import msgspec

from podstatus.runtime.process.limits import LEAST_SHARES, MOST_SHARES, PERIOD, Limits

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
