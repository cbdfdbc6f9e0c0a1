"""Sample the usage of the node and its pods periodically; readers get the newest snapshot."""

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from statistics import linear_regression

import msgspec
from msgspec import structs

from podstatus.base.clock import Clock
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.usage import PodDiskUsage, Usage
from podstatus.node.decide.measured_usage import MeasuredUsage
from podstatus.node.decide.readings import (
    DiskReading,
    MachineReading,
    SystemUsage,
    UsageSnapshot,
    node_usage,
    usage_sample,
    with_cpu_cores,
)
from podstatus.node.machine.kernel_counters import read_own_usage
from podstatus.node.machine.reader import DiskReader, read_machine

logger = logging.getLogger(__name__)

KUBELET = "kubelet"
"""Upstream: SystemContainerKubelet, kubelet/pkg/apis/stats/v1alpha1/types.go v0.36.4."""


async def no_pod_usage() -> Mapping[PodUID, Usage]:
    """Of a runtime that does not measure its pods."""
    return {}


class RuntimeUsage(msgspec.Struct, frozen=True, kw_only=True):
    """How to read the usage that a runtime reports; `pods` first, the rest belongs to its result.

    Upstream's names of system containers: `pods`, `runtime`.
    """

    pods: Callable[[], Awaitable[Mapping[PodUID, Usage]]] = no_pod_usage
    containers: Callable[[], Mapping[PodUID, Mapping[str, Usage]]] = dict
    disks: Callable[[], Mapping[PodUID, PodDiskUsage]] = dict
    system_containers: Callable[[], Mapping[str, Usage]] = dict


NO_RUNTIME_USAGE = RuntimeUsage()
PERIOD_SECONDS = 10.0
FAST_PERIOD_SECONDS = 2.0
"""Shorter sampling interval, when `on_reading` requests it."""


class NodeUsage:
    """Takes a snapshot every 10 s. The newest one may be read from any thread."""

    def __init__(
        self,
        disk: DiskReader,
        *,
        clock: Clock,
        runtime: RuntimeUsage = NO_RUNTIME_USAGE,
        read: Callable[[], MachineReading] = read_machine,
        heartbeat: Callable[[], None] = lambda: None,
        on_reading: Callable[[MachineReading], bool] = lambda _: False,
    ) -> None:
        """`on_reading` returns whether the next reading should follow soon."""
        self._disk = disk
        self._clock = clock
        self._runtime = runtime
        self._started_at = clock.now()
        self._read = read
        self._heartbeat = heartbeat
        self._on_reading = on_reading
        self._snapshot: UsageSnapshot | None = None
        self._measured = MeasuredUsage()
        self._forecast = DiskForecast()

    @property
    def disk_full_in_seconds(self) -> float | None:
        """Seconds until the disk is full at the current rate; None if unknown or not filling."""
        return self._forecast.full_in_seconds

    @property
    def measured(self) -> MeasuredUsage:
        """The usage of the node with its moving averages."""
        return self._measured

    @property
    def snapshot(self) -> UsageSnapshot | None:
        return self._snapshot

    def problem(self) -> str | None:
        """Why the last reading is incomplete; None if it is complete."""
        return self._disk.problem()

    async def run(self) -> None:
        """Take snapshots every period until cancelled."""
        while True:
            self._heartbeat()
            soon = False
            try:
                snapshot = await self.sample_once()
                soon = self._on_reading(snapshot.machine)
            except Exception:
                # For example too many open files: keep the last snapshot.
                logger.warning(
                    "reading the resource usage of the machine failed, will retry", exc_info=True
                )
            await self._clock.wait(FAST_PERIOD_SECONDS if soon else PERIOD_SECONDS)

    async def sample_once(self) -> UsageSnapshot:
        """Take a snapshot now, and return it."""
        disk = await self._disk.read_once()
        pods = await self._read_pods()
        before = self._snapshot
        machine = structs.replace(self._read(), disk=disk)
        at = self._clock.now()
        snapshot = UsageSnapshot(
            at=at,
            monotonic=self._clock.monotonic(),
            machine=machine,
            node=node_usage(machine, before.machine if before else None, at),
            pods=pods,
            # A new object, by which readers notice a new measurement.
            containers=dict(self._runtime.containers()),
            disks=self._runtime.disks(),
            system=self._read_system(at),
        )
        self._snapshot = snapshot
        self._measured = self._measured.add(usage_sample(snapshot))
        if disk is not None:
            self._forecast.add_sample(disk, self._clock.monotonic())
        return snapshot

    def _read_system(self, at: int) -> Mapping[str, SystemUsage]:
        before = self._snapshot.system if self._snapshot else {}
        own = with_cpu_cores(
            read_own_usage(at), before[KUBELET].usage if KUBELET in before else None
        )
        usages = {KUBELET: own, **self._runtime.system_containers()}
        return {
            name: SystemUsage(started_at=self._started_at, usage=usage)
            for name, usage in usages.items()
        }

    async def _read_pods(self) -> Mapping[PodUID, Usage]:
        try:
            return dict(await self._runtime.pods())
        except Exception:
            # The health of the runtime is checked elsewhere.
            logger.warning("reading the resource usage of pods failed, will retry", exc_info=True)
            return self._snapshot.pods if self._snapshot else {}


_SECOND = 1_000_000_000
_WINDOW = 3600 * _SECOND
_SAMPLE_INTERVAL = 60 * _SECOND
"""One sample per minute, so at most 60 are kept."""
_MIN_WINDOW = 5 * 60 * _SECOND
"""Minimum span of samples: a burst of one minute is not a trend."""


class DiskForecast:
    """Forecast of when the disk is full: linear regression over the last hour."""

    def __init__(self) -> None:
        self._samples: deque[tuple[int, int]] = deque()
        self._available = 0

    def add_sample(self, disk: DiskReading, at: int) -> None:
        """Add a reading taken at `at`, monotonic ns."""
        self._available = disk.available_bytes
        if not self._samples or at - self._samples[-1][0] >= _SAMPLE_INTERVAL:
            self._samples.append((at, disk.used_bytes))
        while self._samples[0][0] < at - _WINDOW:
            self._samples.popleft()

    @property
    def full_in_seconds(self) -> float | None:
        """Seconds until the disk is full; None if unknown yet or not filling."""
        if not self._samples or self._samples[-1][0] - self._samples[0][0] < _MIN_WINDOW:
            return None
        times = [at / _SECOND for at, _ in self._samples]
        slope = linear_regression(times, [used for _, used in self._samples]).slope
        return self._available / slope if slope > 0 else None
