"""What containers and pods use, worked out of what was read of them."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from podstatus.kube.objects.usage import Usage
from podstatus.runtime.process.cgroups.model.interface_files import CgroupUsage
from podstatus.runtime.process.state.process_table import ProcessRow

_N = TypeVar("_N", int, float)


class UsageSample(msgspec.Struct, frozen=True, kw_only=True):
    """What was read of a container or a pod at one moment."""

    id: str
    """Of what: another attempt at a container begins to count anew."""
    monotonic_seconds: float
    """In seconds, of a clock that nobody sets."""
    usage: CgroupUsage


def sum_processes(monitor: ProcessRow, processes: Sequence[ProcessRow]) -> CgroupUsage:
    """What a container uses that has no cgroup: all processes that came from its keeper.

    The keeper itself is ours, but not those it has waited for. Memory that processes share is
    counted for each of them.
    """
    seconds = sum(row.own_seconds + row.children_seconds for row in processes)
    return CgroupUsage(
        cpu_seconds=seconds + monitor.children_seconds,
        memory_bytes=sum(row.resident_bytes for row in processes),
        pids=sum(row.threads for row in processes),
    )


def sum_containers(parts: Sequence[CgroupUsage], *, ended_seconds: float) -> CgroupUsage:
    """What a pod uses that has no cgroup. What is not known of one part is not known of all."""
    seconds = _sum(part.cpu_seconds for part in parts)
    return CgroupUsage(
        cpu_seconds=None if seconds is None else seconds + ended_seconds,
        memory_bytes=_sum(part.memory_bytes for part in parts),
        pids=_sum(part.pids for part in parts),
    )


def fill_missing(reading: CgroupUsage | None, other: CgroupUsage | None) -> CgroupUsage:
    """What is known, the first of two before the second."""
    first, second = reading or CgroupUsage(), other or CgroupUsage()
    return CgroupUsage(
        cpu_seconds=second.cpu_seconds if first.cpu_seconds is None else first.cpu_seconds,
        memory_bytes=second.memory_bytes if first.memory_bytes is None else first.memory_bytes,
        pids=second.pids if first.pids is None else first.pids,
    )


def is_complete(reading: CgroupUsage | None) -> bool:
    """Whether nothing is missing."""
    return reading is not None and None not in msgspec.structs.astuple(reading)


def ensure_monotonic(reading: UsageSample, previous: UsageSample | None) -> UsageSample:
    """Processor time only grows. A sum over processes could shrink: some end unseen."""
    spent = None if previous is None or previous.id != reading.id else previous.usage.cpu_seconds
    if spent is None or (reading.usage.cpu_seconds or 0.0) >= spent:
        return reading
    used = msgspec.structs.replace(reading.usage, cpu_seconds=spent)
    return msgspec.structs.replace(reading, usage=used)


def to_usage(reading: UsageSample, previous: UsageSample | None, *, at: int) -> Usage:
    """As others are told it; `at` is in nanoseconds since the Unix epoch."""
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
    now, then = reading.usage.cpu_seconds, previous.usage.cpu_seconds
    if now is None or then is None:
        return None
    return (now - then) / (reading.monotonic_seconds - previous.monotonic_seconds)


def _sum(numbers: Iterable[_N | None]) -> _N | None:
    listed = list(numbers)
    known = [number for number in listed if number is not None]
    return sum(known) if len(known) == len(listed) else None
