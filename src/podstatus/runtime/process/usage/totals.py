"""Computes the usage of containers and pods from samples."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from podstatus.kube.objects.usage import Usage
from podstatus.runtime.process.cgroups.model.interface_files import CgroupUsage
from podstatus.runtime.process.state.process_table import ProcessRow

_N = TypeVar("_N", int, float)


class UsageSample(msgspec.Struct, frozen=True, kw_only=True):
    """One reading of a container or pod."""

    id: str
    """ID of the attempt or pod; a new attempt starts from zero."""
    monotonic_seconds: float
    """Monotonic clock, seconds."""
    usage: CgroupUsage


def sum_processes(monitor: ProcessRow, processes: Sequence[ProcessRow]) -> CgroupUsage:
    """Return the usage of a container without a cgroup: the sum over its monitor's descendants.

    The monitor itself belongs to the agent, but its reaped children count. Shared memory is counted
    once per process.
    """
    seconds = sum(row.own_seconds + row.children_seconds for row in processes)
    return CgroupUsage(
        cpu_seconds=seconds + monitor.children_seconds,
        memory_bytes=sum(row.resident_bytes for row in processes),
        pids=sum(row.threads for row in processes),
    )


def sum_containers(parts: Sequence[CgroupUsage], *, ended_seconds: float) -> CgroupUsage:
    """Return the usage of a pod without a cgroup; unknown if that of one container is unknown."""
    seconds = _sum(part.cpu_seconds for part in parts)
    return CgroupUsage(
        cpu_seconds=None if seconds is None else seconds + ended_seconds,
        memory_bytes=_sum(part.memory_bytes for part in parts),
        pids=_sum(part.pids for part in parts),
    )


def fill_missing(reading: CgroupUsage | None, other: CgroupUsage | None) -> CgroupUsage:
    """Return the first reading, completed from the second."""
    first, second = reading or CgroupUsage(), other or CgroupUsage()
    return CgroupUsage(
        cpu_seconds=second.cpu_seconds if first.cpu_seconds is None else first.cpu_seconds,
        memory_bytes=second.memory_bytes if first.memory_bytes is None else first.memory_bytes,
        pids=second.pids if first.pids is None else first.pids,
    )


def is_complete(reading: CgroupUsage | None) -> bool:
    """Return whether all values are known."""
    return reading is not None and None not in msgspec.structs.astuple(reading)


def ensure_monotonic(reading: UsageSample, previous: UsageSample | None) -> UsageSample:
    """Keep CPU time from decreasing: a sum over processes may shrink when some end unnoticed."""
    cpu_seconds = (
        None if previous is None or previous.id != reading.id else previous.usage.cpu_seconds
    )
    if cpu_seconds is None or (reading.usage.cpu_seconds or 0.0) >= cpu_seconds:
        return reading
    used = msgspec.structs.replace(reading.usage, cpu_seconds=cpu_seconds)
    return msgspec.structs.replace(reading, usage=used)


def to_usage(reading: UsageSample, previous: UsageSample | None, *, at: int) -> Usage:
    """Convert a sample to `Usage`; `at` is in ns since the Unix epoch."""
    return Usage(
        at=at,
        cpu_seconds=reading.usage.cpu_seconds,
        cpu_cores=_cores(reading, previous),
        memory_bytes=reading.usage.memory_bytes,
        pids=reading.usage.pids,
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
