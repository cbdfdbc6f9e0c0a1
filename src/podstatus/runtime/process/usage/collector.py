"""What containers and pods use: by their cgroups, else by their processes; and by their folders."""

import asyncio
import time
from collections.abc import Callable, Mapping

import msgspec

from podstatus.base.clock import Clock
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.usage import Usage
from podstatus.runtime.process.cgroups.model.interface_files import CgroupReading
from podstatus.runtime.process.cgroups.tree import Cgroups
from podstatus.runtime.process.records.models import ProcessIdentity
from podstatus.runtime.process.state.process_table import ProcessTable, read_processes
from podstatus.runtime.process.usage.disk_usage import FolderSizes
from podstatus.runtime.process.usage.totals import (
    Reading,
    completed,
    is_complete,
    never_less,
    sum_of_containers,
    sum_of_processes,
    usage_since,
)


class RunningContainer(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that runs."""

    id: str
    """Without the kind of runtime in front."""
    keeper: ProcessIdentity


class PodUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod uses."""

    pod: Usage
    containers: Mapping[str, Usage]
    """Those that run, by name."""


Running = Mapping[PodUID, Mapping[str, RunningContainer]]
"""All pods, each with its containers that run, by name."""


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    """What was read of a pod."""

    pod: CgroupReading | None
    containers: Mapping[str, CgroupReading]


class _Book(msgspec.Struct, frozen=True, kw_only=True):
    """What is remembered of a pod from one reading to the next."""

    pod: Reading
    containers: Mapping[str, Reading]
    ended_seconds: float
    """Of containers that ended, as far as they were seen."""


class ProcessUsage:
    """Reads all pods at once; how busy they are shows from the second time on."""

    def __init__(
        self,
        cgroups: Cgroups,
        sizes: FolderSizes,
        *,
        clock: Clock,
        monotonic: Callable[[], float] = time.monotonic,
        processes: Callable[[], ProcessTable] = read_processes,
    ) -> None:
        self._cgroups = cgroups
        self._sizes = sizes
        self._clock = clock
        self._monotonic = monotonic
        self._processes = processes
        self._books: dict[PodUID, _Book] = {}

    async def read(self, pods: Running) -> dict[PodUID, PodUsage]:
        """What each of these uses; of the others nothing is remembered."""
        found = await asyncio.to_thread(self._look, pods)
        return self._count(pods, found)

    def _look(self, pods: Running) -> dict[PodUID, _Found]:
        """All that is read, and nothing that is changed: this is another thread."""
        counted = {
            (uid, name): self._cgroups.usage(uid, running.id)
            for uid, containers in pods.items()
            for name, running in containers.items()
        }
        table = None if all(map(is_complete, counted.values())) else self._processes()
        return {
            uid: _Found(
                pod=self._cgroups.pod_usage(uid),
                containers={
                    name: completed(counted[uid, name], _by_processes(table, running))
                    for name, running in containers.items()
                },
            )
            for uid, containers in pods.items()
        }

    def _count(self, pods: Running, found: Mapping[PodUID, _Found]) -> dict[PodUID, PodUsage]:
        at, moment = self._clock.now(), self._monotonic()
        before = self._books
        self._books = {
            uid: _book(uid, pods[uid], found[uid], before.get(uid), moment) for uid in pods
        }
        sizes = self._sizes.sizes(pods)
        return {
            uid: _usage(book, before.get(uid), at=at, disk=sizes[uid])
            for uid, book in self._books.items()
        }


def _by_processes(table: ProcessTable | None, running: RunningContainer) -> CgroupReading | None:
    keeper = None if table is None else table.find(running.keeper)
    if table is None or keeper is None:
        return None
    return sum_of_processes(keeper, table.descendants(keeper.pid))


def _book(
    uid: PodUID,
    running: Mapping[str, RunningContainer],
    found: _Found,
    before: _Book | None,
    moment: float,
) -> _Book:
    earlier = {} if before is None else before.containers
    containers = {
        name: never_less(Reading(id=running[name].id, moment=moment, used=used), earlier.get(name))
        for name, used in found.containers.items()
    }
    ended = _ended_seconds(earlier, containers) + (before.ended_seconds if before else 0.0)
    total = sum_of_containers([part.used for part in containers.values()], ended_seconds=ended)
    pod = Reading(id=uid, moment=moment, used=completed(found.pod, total))
    return _Book(
        pod=never_less(pod, before.pod if before else None),
        containers=containers,
        ended_seconds=ended,
    )


def _ended_seconds(earlier: Mapping[str, Reading], now: Mapping[str, Reading]) -> float:
    return sum(
        reading.used.cpu_seconds or 0.0
        for name, reading in earlier.items()
        if name not in now or now[name].id != reading.id
    )


def _usage(book: _Book, before: _Book | None, *, at: int, disk: int | None) -> PodUsage:
    earlier = {} if before is None else before.containers
    pod = usage_since(book.pod, before.pod if before else None, at=at)
    return PodUsage(
        pod=msgspec.structs.replace(pod, disk_bytes=disk),
        containers={
            name: usage_since(reading, earlier.get(name), at=at)
            for name, reading in book.containers.items()
        },
    )
