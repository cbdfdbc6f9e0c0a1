"""Look once in a while at what node and pods use; others read the newest snapshot."""

import logging
from collections.abc import Awaitable, Callable, Mapping

from msgspec import structs

from podstatus.base.clock import Clock
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.usage import Usage
from podstatus.node.decide.disk_forecast import DiskForecast
from podstatus.node.decide.readings import MachineReading, UsageSnapshot, node_usage
from podstatus.node.machine.reader import DiskReader, read_machine

logger = logging.getLogger(__name__)

ReadPodUsage = Callable[[], Awaitable[Mapping[PodUID, Usage]]]
ReadContainerUsage = Callable[[], Mapping[PodUID, Mapping[str, Usage]]]


async def _no_pods() -> Mapping[PodUID, Usage]:
    return {}


FAST_PERIOD_SECONDS = 2.0
"""Until the next snapshot, where one is wanted soon."""


class NodeUsage:
    """Takes a snapshot every `period` seconds. The newest one may be read from any thread."""

    def __init__(
        self,
        disk: DiskReader,
        *,
        clock: Clock,
        pods: ReadPodUsage = _no_pods,
        containers: ReadContainerUsage = dict,
        read: Callable[[], MachineReading] = read_machine,
        period: float = 10.0,
        heartbeat: Callable[[], None] = lambda: None,
        on_reading: Callable[[MachineReading], bool] = lambda _: False,
    ) -> None:
        """`containers` tells of those of the pods that were told of last; `on_reading` returns
        whether the next reading is wanted soon.
        """
        self._disk = disk
        self._clock = clock
        self._pods = pods
        self._containers = containers
        self._read = read
        self._period = period
        self._heartbeat = heartbeat
        self._on_reading = on_reading
        self._snapshot: UsageSnapshot | None = None
        self._forecast = DiskForecast()

    @property
    def disk_full_in_seconds(self) -> float | None:
        """If it goes on as in the last hour; None if it is not known, or does not fill."""
        return self._forecast.full_in_seconds

    @property
    def snapshot(self) -> UsageSnapshot | None:
        """The newest one, or None before the first."""
        return self._snapshot

    def problem(self) -> str | None:
        """Why the machine cannot be read in full, or None."""
        return self._disk.problem()

    async def run(self) -> None:
        """Take snapshots until cancelled."""
        while True:
            self._heartbeat()
            soon = False
            try:
                taken = await self.sample_once()
                soon = self._on_reading(taken.machine)
            except Exception:
                # Too many open files, say: the last snapshot has to do.
                logger.warning("the machine cannot be read, will retry", exc_info=True)
            await self._clock.wait(min(self._period, FAST_PERIOD_SECONDS) if soon else self._period)

    async def sample_once(self) -> UsageSnapshot:
        """Take a snapshot now."""
        disk = await self._disk.read_once()
        pods = await self._read_pods()
        before = self._snapshot
        machine = structs.replace(self._read(), disk=disk)
        at = self._clock.now()
        taken = UsageSnapshot(
            at=at,
            machine=machine,
            node=node_usage(machine, before.machine if before else None, at),
            pods=pods,
            containers=self._containers(),
        )
        self._snapshot = taken
        if disk is not None:
            self._forecast.add_sample(disk, at)
        return taken

    async def _read_pods(self) -> Mapping[PodUID, Usage]:
        try:
            return dict(await self._pods())
        except Exception:
            # A runtime that cannot say it has other ways to be found broken.
            logger.warning("the usage of pods cannot be read, will retry", exc_info=True)
            return self._snapshot.pods if self._snapshot else {}
