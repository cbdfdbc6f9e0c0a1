"""The page `/metrics/cadvisor`: reads details of containers when it is requested."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import msgspec

from podstatus.base.clock import Clock
from podstatus.kube.objects.cgroup_details import PodDetails
from podstatus.kube.objects.node import NodeSystemInfo
from podstatus.kube.objects.pod import PodUID
from podstatus.node.decide.readings import MachineDetails, UsageSnapshot
from podstatus.observe.metrics.cadvisor_collector import CadvisorState, cadvisor_metrics
from podstatus.observe.metrics.model import LazySamples, Samples
from podstatus.runtime.port import RuntimePod

_MAX_AGE_NS = 10 * 10**9
"""Upstream: defaultHousekeepingInterval, pkg/kubelet/cadvisor/cadvisor_linux.go v1.36.4."""

PodDetailsReader = Callable[[], Mapping[PodUID, PodDetails]]


class CadvisorSources(msgspec.Struct, frozen=True, kw_only=True):
    """Where the page has its values from. Only `machine` and the reader of `pods` may block."""

    snapshot: Callable[[], UsageSnapshot | None]
    running: Callable[[], Mapping[PodUID, RuntimePod]]
    pods: Callable[[], PodDetailsReader]
    """Returns a function that reads the details of the pods that run now."""
    machine: Callable[[int], MachineDetails]
    info: NodeSystemInfo


class CadvisorPage:
    """Collects the page; details are at most 10 s old, and read once for all requests."""

    def __init__(self, sources: CadvisorSources, *, clock: Clock) -> None:
        self._sources = sources
        self._clock = clock
        self._read_at: int | None = None
        self._pods: Mapping[PodUID, PodDetails] = {}

    def collect(self) -> Sequence[LazySamples]:
        """Return what the thread that renders pages computes; never blocks."""
        sources = self._sources
        return (partial(self._samples, sources.snapshot(), sources.running(), sources.pods()),)

    def _samples(
        self,
        snapshot: UsageSnapshot | None,
        running: Mapping[PodUID, RuntimePod],
        read: PodDetailsReader,
    ) -> Iterable[Samples]:
        """In the one thread that renders pages, so without a lock."""
        now = self._clock.monotonic()
        if self._read_at is None or now - self._read_at >= _MAX_AGE_NS:
            self._pods, self._read_at = read(), now
        return cadvisor_metrics(
            CadvisorState(
                now=self._clock.now(),
                snapshot=snapshot,
                running=running,
                details=self._pods,
                machine=self._sources.machine(self._clock.now()),
                info=self._sources.info,
            )
        )
