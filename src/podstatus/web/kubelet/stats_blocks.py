"""The blocks of `/stats/summary`: CPU, memory, swap, I/O, filesystems, network.

A value that is not known is omitted, and a block without any value, too.

Upstream: CPUStats, MemoryStats, SwapStats, IOStats, FsStats, NetworkStats and PSIStats,
kubelet/pkg/apis/stats/v1alpha1/types.go v0.36.4.
"""

from collections.abc import Sequence
from typing import Any

from podstatus.base.pressure import Pressure, Stall
from podstatus.kube.objects.usage import DiskUsage, Usage
from podstatus.kube.scalars.time import Time
from podstatus.node.decide.readings import DiskReading, InterfaceReading

Block = dict[str, Any]
_NANOS = 1_000_000_000
_DEFAULT_INTERFACE = "eth0"
"""Upstream: defaultNetworkInterfaceName, pkg/kubelet/stats/helper.go v1.36.4."""


def cpu(usage: Usage) -> Block | None:
    return _timed(
        usage.at,
        usageNanoCores=_nanos(usage.cpu_cores),
        usageCoreNanoSeconds=_nanos(usage.cpu_seconds),
        psi=_pressure(usage.pressure.cpu),
    )


def memory(usage: Usage) -> Block | None:
    detail, working_set = usage.memory, usage.memory_bytes
    return _timed(
        usage.at,
        availableBytes=_rest(detail.limit_bytes, working_set),
        usageBytes=detail.usage_bytes,
        workingSetBytes=working_set,
        rssBytes=detail.rss_bytes,
        pageFaults=detail.page_faults,
        majorPageFaults=detail.major_page_faults,
        psi=_pressure(usage.pressure.memory),
    )


def swap(usage: Usage) -> Block | None:
    used = usage.memory.swap_bytes
    return _timed(
        usage.at,
        swapAvailableBytes=_rest(usage.memory.swap_limit_bytes, used),
        swapUsageBytes=used,
    )


def io(usage: Usage) -> Block | None:
    return _timed(usage.at, psi=_pressure(usage.pressure.io))


def filesystem(disk: DiskReading, at: int) -> Block:
    """Capacity and usage of a whole filesystem."""
    block = disk_share(disk, DiskUsage(is_complete=False), at)
    block["usedBytes"] = disk.used_bytes
    if disk.inodes > 0:
        block["inodesUsed"] = disk.inodes - disk.inodes_free
    return block


def disk_share(disk: DiskReading | None, used: DiskUsage, at: int) -> Block:
    """What a part uses of the filesystem `disk`; only a lower bound of it is not shown."""
    counted = disk is not None and disk.inodes > 0
    return without_none(
        time=rfc3339(at),
        availableBytes=disk and disk.available_bytes,
        capacityBytes=disk and disk.total_bytes,
        usedBytes=used.bytes if used.is_complete else None,
        inodesFree=disk.inodes_free if disk and counted else None,
        inodes=disk.inodes if disk and counted else None,
        inodesUsed=used.inodes if used.is_complete else None,
    )


def network(interfaces: Sequence[InterfaceReading], at: int) -> Block | None:
    """All interfaces, and the default one at the top, if there is one of upstream's name."""
    if not interfaces:
        return None
    blocks = [_interface(each) for each in interfaces]
    default = next((it for it in blocks if it["name"] == _DEFAULT_INTERFACE), {"name": ""})
    return {"time": rfc3339(at), **default, "interfaces": blocks}


def _interface(reading: InterfaceReading) -> Block:
    return {
        "name": reading.name,
        "rxBytes": reading.received_bytes,
        "rxErrors": reading.receive_errors,
        "txBytes": reading.sent_bytes,
        "txErrors": reading.send_errors,
    }


def _pressure(pressure: Pressure | None) -> Block | None:
    if pressure is None:
        return None
    return without_none(full=_stall(pressure.full), some=_stall(pressure.some))


def _stall(stall: Stall | None) -> Block | None:
    if stall is None:
        return None
    # Nanoseconds, as the API says. The kubelet v1.36.4 has the kernel's microseconds here.
    return {
        "total": stall.total_nanoseconds,
        "avg10": stall.avg10,
        "avg60": stall.avg60,
        "avg300": stall.avg300,
    }


def without_none(**values: Any) -> Block:
    return {name: value for name, value in values.items() if value is not None}


def rfc3339(at: int) -> str | None:
    """The time of nanoseconds since the Unix epoch; None for 0."""
    return Time.from_unix_nanos(at).wire


def _timed(at: int, **values: Any) -> Block | None:
    known = without_none(**values)
    return {"time": rfc3339(at), **known} if known else None


def _rest(limit: int | None, used: int | None) -> int | None:
    return None if limit is None or used is None else max(0, limit - used)


def _nanos(amount: float | None) -> int | None:
    return None if amount is None else round(amount * _NANOS)
