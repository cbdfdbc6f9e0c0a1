"""Samples of the usage of containers and pods, from cgroups or from their processes. Pure."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec
from msgspec import structs

from podstatus.kube.objects.usage import MemoryUsage, Usage
from podstatus.runtime.process.cgroups.model.interface_files import CgroupUsage
from podstatus.runtime.process.state.process_table import ProcessRow, ProcessTable
from podstatus.runtime.process.usage.counters import UsageCounters

_N = TypeVar("_N", int, float)


class UsageSample(msgspec.Struct, frozen=True, kw_only=True):
    """One reading of a container or pod."""

    id: str
    """ID of the attempt or pod; a new attempt starts from zero."""
    monotonic_seconds: float
    """Monotonic clock, seconds."""
    usage: CgroupUsage


def sum_processes(
    monitor: ProcessRow, processes: Sequence[ProcessRow], table: ProcessTable
) -> CgroupUsage:
    """Return the usage of a container without a cgroup: the sum over its monitor's descendants.

    The monitor itself belongs to the agent, but its reaped children count. Shared memory is counted
    once per process; page cache is not counted.
    """
    counters = sum(
        (own_counters(row) + _children_counters(row) for row in processes),
        _children_counters(monitor),
    )
    return _sum_rows(processes, table, counters)


def sum_own(processes: Sequence[ProcessRow], table: ProcessTable) -> CgroupUsage:
    """Return the usage of these processes without their children."""
    counters = sum(map(own_counters, processes), UsageCounters())
    return _sum_rows(processes, table, counters)


def _sum_rows(
    processes: Sequence[ProcessRow], table: ProcessTable, counters: UsageCounters
) -> CgroupUsage:
    resident = sum(row.resident_bytes for row in processes)
    return CgroupUsage(
        cpu_seconds=counters.cpu_seconds,
        memory_bytes=resident,
        memory=MemoryUsage(
            usage_bytes=resident,
            rss_bytes=_sum(table.anonymous_bytes(row.pid) for row in processes),
            page_faults=counters.page_faults,
            major_page_faults=counters.major_page_faults,
        ),
        pids=sum(row.threads for row in processes),
        processes=sum(row.state != "Z" for row in processes),
    )


def with_counters(reading: CgroupUsage, counters: UsageCounters) -> CgroupUsage:
    """Return the reading with other counters, such as those that include ended members."""
    memory = structs.replace(
        reading.memory,
        page_faults=counters.page_faults,
        major_page_faults=counters.major_page_faults,
    )
    return structs.replace(reading, cpu_seconds=counters.cpu_seconds, memory=memory)


def sum_parts(parts: Sequence[CgroupUsage], *, ended: UsageCounters) -> CgroupUsage:
    """Return the usage of a pod or of all pods without a cgroup; unknown if that of a part is."""
    seconds = _sum(part.cpu_seconds for part in parts)
    memory = [part.memory for part in parts]
    faults = _sum(it.page_faults for it in memory)
    major_faults = _sum(it.major_page_faults for it in memory)
    return CgroupUsage(
        cpu_seconds=None if seconds is None else seconds + ended.cpu_seconds,
        memory_bytes=_sum(part.memory_bytes for part in parts),
        memory=MemoryUsage(
            usage_bytes=_sum(it.usage_bytes for it in memory),
            rss_bytes=_sum(it.rss_bytes for it in memory),
            page_faults=None if faults is None else faults + ended.page_faults,
            major_page_faults=None
            if major_faults is None
            else major_faults + ended.major_page_faults,
        ),
        pids=_sum(part.pids for part in parts),
        processes=_sum(part.processes for part in parts),
    )


def fill_missing(reading: CgroupUsage | None, other: CgroupUsage | None) -> CgroupUsage:
    """Return the first reading, completed from the second."""
    first, second = reading or CgroupUsage(), other or CgroupUsage()
    memory = second if first.memory_bytes is None else first
    return CgroupUsage(
        cpu_seconds=second.cpu_seconds if first.cpu_seconds is None else first.cpu_seconds,
        memory_bytes=memory.memory_bytes,
        memory=memory.memory,
        pids=second.pids if first.pids is None else first.pids,
        processes=second.processes if first.processes is None else first.processes,
        pressure=first.pressure,
        throttling=first.throttling,
    )


def is_complete(reading: CgroupUsage | None) -> bool:
    """Return whether nothing is missing that could be read from the processes instead."""
    return reading is not None and None not in (
        reading.cpu_seconds,
        reading.memory_bytes,
        reading.pids,
    )


def ensure_monotonic(reading: UsageSample, previous: UsageSample | None) -> UsageSample:
    """Keep counters from decreasing: a sum over processes may shrink when some end unnoticed."""
    if previous is None or previous.id != reading.id:
        return reading
    now, before = reading.usage, previous.usage
    memory = structs.replace(
        now.memory,
        page_faults=_larger(now.memory.page_faults, before.memory.page_faults),
        major_page_faults=_larger(now.memory.major_page_faults, before.memory.major_page_faults),
    )
    seconds = _larger(now.cpu_seconds, before.cpu_seconds)
    used = structs.replace(now, cpu_seconds=seconds, memory=memory)
    return structs.replace(reading, usage=used)


def to_usage(reading: UsageSample, previous: UsageSample | None, *, at: int) -> Usage:
    """Convert a sample to `Usage`; `at` is in ns since the Unix epoch."""
    return Usage(
        at=at,
        cpu_seconds=reading.usage.cpu_seconds,
        cpu_cores=_cores(reading, previous),
        memory_bytes=reading.usage.memory_bytes,
        pids=reading.usage.pids,
        processes=reading.usage.processes,
        memory=reading.usage.memory,
        pressure=reading.usage.pressure,
        throttling=reading.usage.throttling,
    )


def _cores(reading: UsageSample, previous: UsageSample | None) -> float | None:
    if (
        previous is None
        or previous.id != reading.id
        or reading.monotonic_seconds <= previous.monotonic_seconds
    ):
        return None
    current, earlier = reading.usage.cpu_seconds, previous.usage.cpu_seconds
    if current is None or earlier is None:
        return None
    return (current - earlier) / (reading.monotonic_seconds - previous.monotonic_seconds)


def _sum(numbers: Iterable[_N | None]) -> _N | None:
    values = list(numbers)
    known = [number for number in values if number is not None]
    return sum(known) if len(known) == len(values) else None


def _larger(value: _N | None, before: _N | None) -> _N | None:
    return value if before is None or (value is not None and value >= before) else before


def own_counters(row: ProcessRow) -> UsageCounters:
    return UsageCounters(
        cpu_seconds=row.own_seconds,
        page_faults=row.page_faults,
        major_page_faults=row.major_page_faults,
    )


def _children_counters(row: ProcessRow) -> UsageCounters:
    return UsageCounters(
        cpu_seconds=row.children_seconds,
        page_faults=row.children_page_faults,
        major_page_faults=row.children_major_page_faults,
    )
