"""What containers and pods use, worked out of what was read of them."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from podstatus.kube.objects.usage import Usage
from podstatus.runtime.process.cgroups.model.interface_files import CgroupReading
from podstatus.runtime.process.state.process_table import ProcessRow

_N = TypeVar("_N", int, float)


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What was read of a container or a pod at one moment."""

    id: str
    """Of what: another attempt at a container begins to count anew."""
    moment: float
    """In seconds, of a clock that nobody sets."""
    used: CgroupReading


def sum_of_processes(keeper: ProcessRow, processes: Sequence[ProcessRow]) -> CgroupReading:
    """What a container uses that has no cgroup: all processes that came from its keeper.

    The keeper itself is ours, but not those it has waited for. Memory that processes share is
    counted for each of them.
    """
    seconds = sum(row.own_seconds + row.children_seconds for row in processes)
    return CgroupReading(
        cpu_seconds=seconds + keeper.children_seconds,
        memory_bytes=sum(row.resident_bytes for row in processes),
        pids=sum(row.threads for row in processes),
    )


def sum_of_containers(parts: Sequence[CgroupReading], *, ended_seconds: float) -> CgroupReading:
    """What a pod uses that has no cgroup. What is not known of one part is not known of all."""
    seconds = _sum(part.cpu_seconds for part in parts)
    return CgroupReading(
        cpu_seconds=None if seconds is None else seconds + ended_seconds,
        memory_bytes=_sum(part.memory_bytes for part in parts),
        pids=_sum(part.pids for part in parts),
    )


def completed(reading: CgroupReading | None, other: CgroupReading | None) -> CgroupReading:
    """What is known, the first of two before the second."""
    first, second = reading or CgroupReading(), other or CgroupReading()
    return CgroupReading(
        cpu_seconds=second.cpu_seconds if first.cpu_seconds is None else first.cpu_seconds,
        memory_bytes=second.memory_bytes if first.memory_bytes is None else first.memory_bytes,
        pids=second.pids if first.pids is None else first.pids,
    )


def is_complete(reading: CgroupReading | None) -> bool:
    """Whether nothing is missing."""
    return reading is not None and None not in msgspec.structs.astuple(reading)


def never_less(reading: Reading, before: Reading | None) -> Reading:
    """Processor time only grows. A sum over processes could shrink: some end unseen."""
    spent = None if before is None or before.id != reading.id else before.used.cpu_seconds
    if spent is None or (reading.used.cpu_seconds or 0.0) >= spent:
        return reading
    used = msgspec.structs.replace(reading.used, cpu_seconds=spent)
    return msgspec.structs.replace(reading, used=used)


def usage_since(reading: Reading, before: Reading | None, *, at: int) -> Usage:
    """As others are told it; `at` is in nanoseconds since the Unix epoch."""
    return Usage(
        at=at,
        cpu_seconds=reading.used.cpu_seconds,
        cpu_cores=_cores(reading, before),
        memory_bytes=reading.used.memory_bytes,
        pids=reading.used.pids,
    )


def _cores(reading: Reading, before: Reading | None) -> float | None:
    if before is None or before.id != reading.id or reading.moment <= before.moment:
        return None
    now, then = reading.used.cpu_seconds, before.used.cpu_seconds
    if now is None or then is None:
        return None
    return (now - then) / (reading.moment - before.moment)


def _sum(numbers: Iterable[_N | None]) -> _N | None:
    listed = list(numbers)
    known = [number for number in listed if number is not None]
    return sum(known) if len(known) == len(listed) else None
