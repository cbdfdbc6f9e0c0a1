"""Evict pods when the node runs out of a resource, or a pod exceeds a local storage limit.

    usage ─► decide.synchronize ─► record ─► PodWorkers.kill ─► wait until the pod is finished
                     └► pressure conditions: Node status, admission

One pod is evicted at a time for the node; all pods above a limit of their own at once. A pod that
terminates already is not evicted: if it is the first in the ranking, the manager waits for it once,
then passes over it.

Upstream: managerImpl, pkg/kubelet/eviction/eviction_manager.go v1.36.4.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence

import msgspec

from podstatus.base.timeouts import wait_event_or_timeout
from podstatus.events import reasons
from podstatus.events.object_references import pod_reference
from podstatus.eviction.decide.admit import PressureRejection, reject_under_pressure
from podstatus.eviction.decide.messages import REASON
from podstatus.eviction.decide.model import (
    DELETE_UNUSED_CONTAINERS,
    EPHEMERAL_STORAGE,
    INODES,
    EvictionConfig,
    EvictionDecision,
    EvictionState,
    PodEviction,
    ReclaimAttempt,
    Thresholds,
)
from podstatus.eviction.decide.observations import make_signal_observations
from podstatus.eviction.decide.pressure import is_reclaimed, thresholds_met
from podstatus.eviction.decide.synchronize import synchronize
from podstatus.eviction.metrics import EvictionMetrics
from podstatus.eviction.records import EvictionRecords
from podstatus.eviction.usage_summary import node_usage, usage_summary
from podstatus.kube.objects.pod import Pod, PodUID, is_terminal_phase
from podstatus.node.decide.readings import MachineReading, UsageSnapshot
from podstatus.workers.dependencies import WorkerDependencies
from podstatus.workers.lifecycle.state_machine import (
    Eviction,
    PodLifecycle,
    PodWorkerState,
    RequestedEviction,
)
from podstatus.workers.pod_workers import PodWorkers

logger = logging.getLogger(__name__)

_SECOND = 1_000_000_000
PERIOD_SECONDS = 10.0
"""Interval between two cycles without a new reading. Upstream: evictionMonitoringPeriod."""
CLEANUP_TIMEOUT_SECONDS = 30.0
"""Longest wait for an evicted pod. Upstream: podCleanupTimeout."""
CLEANUP_POLL_SECONDS = 1.0
RECOVERY_SECONDS = 30.0
"""Time after a pressure during which readings follow each other quickly."""


class NodeUsagePort(msgspec.Struct, frozen=True, kw_only=True):
    """The usage of the node, and what depends on its pressure."""

    snapshot: Callable[[], UsageSnapshot | None]
    """The newest usage."""
    sample: Callable[[], Awaitable[UsageSnapshot]]
    """Measure the usage now."""
    measure_disks: Callable[[], Awaitable[None]]
    """Measure the disk usage of all pods, for the next sample."""
    pods_memory_limit: Callable[[], int | None]
    """Memory in bytes that all pods together may use."""
    warn: Callable[[str, str], None]
    """Record a Warning event about the node, with a reason and a message."""
    on_change: Callable[[], None]
    """Called when a pressure condition begins or ends."""


class EvictionManager:
    """Observes the usage of the node, and evicts pods. Not thread-safe: for one event loop."""

    def __init__(
        self,
        dependencies: WorkerDependencies,
        workers: PodWorkers,
        config: EvictionConfig,
        *,
        records: EvictionRecords,
        node: NodeUsagePort,
        allocated: Callable[[Pod], Pod],
        all_sources_ready: Callable[[], bool],
        heartbeat: Callable[[], None],
    ) -> None:
        """`allocated` returns a pod with the resources that the node has allocated to it."""
        self._pods = dependencies.pod_manager
        self._registry = dependencies.registry
        self._statuses = dependencies.statuses
        self._recorder = dependencies.recorder
        self._pleg = dependencies.pleg
        self._clock = dependencies.clock
        self._workers = workers
        self._config = config
        self._records = records
        self._node = node
        self._allocated = allocated
        self._all_sources_ready = all_sources_ready
        self._heartbeat = heartbeat
        self.metrics = EvictionMetrics()
        self._state = EvictionState()
        self._new_reading = asyncio.Event()
        self._passed_over: set[PodUID] = set()
        """Pods that did not terminate in the time that the manager waited for them."""
        self._pressure_seen_at: int | None = None
        self._reclaim_not_before = 0

    # Queries

    @property
    def node_conditions(self) -> tuple[str, ...]:
        """The pressure conditions that are True."""
        return self._state.node_conditions

    def rejection_for(self, pod: Pod) -> PressureRejection | None:
        """Return why a new pod is rejected; None if it is admitted.

        A pod that the runtime holds already is not rejected: the agent was restarted.
        """
        if self._pleg.find(pod.uid) is not None:
            return None
        return reject_under_pressure(pod, self.node_conditions)

    # Notifications

    def observe(self, machine: MachineReading) -> bool:
        """Process a new reading soon. Return whether the next reading should follow quickly."""
        self._new_reading.set()
        now = self._clock.monotonic()
        observations = make_signal_observations(node_usage(machine, now))
        if thresholds_met(self._config.thresholds, observations):
            self._pressure_seen_at = now
            return True
        seen = self._pressure_seen_at
        return seen is not None and now - seen < RECOVERY_SECONDS * _SECOND

    # Loop

    async def run(self) -> None:
        """Run a cycle for each reading, and at least every 10 s, until cancelled."""
        while True:
            self._heartbeat()
            if not await self._synchronize_safely():
                await wait_event_or_timeout(self._new_reading, self._clock, PERIOD_SECONDS)

    async def _synchronize_safely(self) -> bool:
        """Run a cycle. Return whether a pod was evicted, so that the next follows at once."""
        self._new_reading.clear()
        try:
            evicted = await self.synchronize_once()
            if evicted:
                await self._wait_finished(evicted)
                await self._node.sample()
        except Exception:
            logger.exception("eviction failed, will retry")
            return False
        return bool(evicted)

    async def synchronize_once(self) -> Sequence[PodUID]:
        """Observe, and evict pods if necessary. Return the pods whose end to wait for."""
        await self._remove_settled_records()
        snapshot = self._node.snapshot()
        if snapshot is None:
            return ()
        decision = self._decide(snapshot)
        if not self._all_sources_ready():
            return ()  # among some of the pods, the wrong one could be the first
        if decision.limit_evictions:
            return await self._evict_all(decision.limit_evictions)
        if decision.reclaim is not None and self._clock.monotonic() >= self._reclaim_not_before:
            return await self._reclaim(decision.reclaim)
        return ()

    def _decide(self, snapshot: UsageSnapshot) -> EvictionDecision:
        summary = usage_summary(snapshot, self._node.pods_memory_limit())
        pods = [
            self._allocated(lifecycle.pod)
            for lifecycle in self._registry.all()
            if lifecycle.pod is not None and self._is_viable(lifecycle)
        ]
        terminating = {pod.uid for pod in pods if self._is_terminating(pod.uid)}
        before = self._state.node_conditions
        now = self._clock.monotonic()
        decision = synchronize(
            self._state, self._config, summary, pods, now, terminating=terminating
        )
        self._state = decision.state
        if self._state.node_conditions != before:
            logger.info("pressure changed: conditions=%s", ",".join(self._state.node_conditions))
            self._node.on_change()
        return decision

    def _is_viable(self, lifecycle: PodLifecycle) -> bool:
        """Whether the eviction of a pod, or waiting for it, could free resources."""
        if lifecycle.state is PodWorkerState.TERMINATING:
            return lifecycle.uid not in self._passed_over
        return lifecycle.state is PodWorkerState.SYNC

    # Reclaim

    async def _reclaim(self, attempt: ReclaimAttempt) -> Sequence[PodUID]:
        self._node.warn(reasons.EVICTION_THRESHOLD_MET, attempt.event_message)
        if DELETE_UNUSED_CONTAINERS in attempt.node_reclaim and await self._delete_unused():
            return ()
        if attempt.resource in (EPHEMERAL_STORAGE, INODES):
            fresh = await self._with_measured_disks()
            if fresh is None:
                return ()
            attempt = fresh
        self._observe_ages(attempt.thresholds)
        evicted = () if attempt.eviction is None else await self._evict_first(attempt.eviction)
        if not evicted:
            logger.info("no pod can be evicted: resource=%s", attempt.resource)
            self._reclaim_not_before = self._clock.monotonic() + int(PERIOD_SECONDS * _SECOND)
        return evicted

    async def _with_measured_disks(self) -> ReclaimAttempt | None:
        """Decide again with fresh usage: what fills the disk now was small at the last reading."""
        await self._node.measure_disks()
        return self._decide(await self._node.sample()).reclaim

    async def _evict_first(self, eviction: PodEviction) -> Sequence[PodUID]:
        """Evict the first pod in the ranking, or wait for it if it terminates already."""
        lifecycle = self._registry.get(eviction.pod.uid)
        if lifecycle is not None and lifecycle.state is PodWorkerState.TERMINATING:
            return (lifecycle.uid,)
        return await self._evict_all((eviction,))

    async def _delete_unused(self) -> bool:
        """Remove the files of finished pods. Return whether no threshold is met any more."""
        unused = [lifecycle.uid for lifecycle in self._registry.all() if self._is_unused(lifecycle)]
        if not unused:
            return False
        logger.info("removing the files of finished pods: pods=%d", len(unused))
        for uid in unused:
            self._workers.reclaim(uid)
        await self._wait_until(lambda: all(map(self._is_cleaned_up, unused)))
        summary = usage_summary(await self._node.sample(), self._node.pods_memory_limit())
        return is_reclaimed(self._config.thresholds, make_signal_observations(summary.node))

    def _is_unused(self, lifecycle: PodLifecycle) -> bool:
        if lifecycle.state is not PodWorkerState.FINISHED or lifecycle.cleaned_up:
            return False
        return (
            self._statuses.is_acknowledged(lifecycle.uid)
            or self._records.find(lifecycle.uid) is not None
        )

    def _is_cleaned_up(self, uid: PodUID) -> bool:
        lifecycle = self._registry.get(uid)
        return lifecycle is None or lifecycle.cleaned_up

    def _observe_ages(self, thresholds: Thresholds) -> None:
        now = self._clock.monotonic()
        for threshold in thresholds:
            at = self._state.observations[threshold.signal].at
            if at is not None:
                self.metrics.stats_age.observe((now - at) / _SECOND, threshold.signal)

    # Eviction

    async def _evict_all(self, evictions: Iterable[PodEviction]) -> Sequence[PodUID]:
        return [eviction.pod.uid for eviction in evictions if await self._evict(eviction)]

    async def _evict(self, eviction: PodEviction) -> bool:
        """Evict a pod. Return False if it terminates already."""
        uid = eviction.pod.uid
        if not self._is_synced(uid):
            return False
        requested = RequestedEviction(
            eviction=Eviction(
                reason=REASON, message=eviction.message, is_disruption=eviction.is_disruption
            ),
            grace_seconds=eviction.grace_period_seconds,
        )
        await self._records.store(uid, requested)
        if not self._is_synced(uid):
            await self._records.remove(uid)
            return False
        logger.info(
            "evicting pod: pod=%s/%s uid=%s signal=%s message=%s",
            *eviction.pod.full_name,
            uid,
            eviction.signal,
            eviction.message,
        )
        about = pod_reference(eviction.pod)
        self._recorder.warn(about, reasons.EVICTED, eviction.message, eviction.annotations)
        self._workers.kill(uid, requested.eviction, requested.grace_seconds)
        self.metrics.evictions.inc(eviction.signal)
        return True

    def _is_synced(self, uid: PodUID) -> bool:
        lifecycle = self._registry.get(uid)
        return lifecycle is not None and lifecycle.state is PodWorkerState.SYNC

    async def _wait_finished(self, uids: Collection[PodUID]) -> None:
        """Wait until the files of all these pods can be removed, or are, for a limited time.

        Before that the eviction of another pod could be needless. Upstream: waitForPodsCleanup.
        """
        await self._wait_until(lambda: all(map(self._has_finished, uids)))
        late = {uid for uid in uids if not self._has_finished(uid)}
        if late:
            logger.warning("evicted pods did not finish in time: pods=%d", len(late))
        self._passed_over = {uid for uid in self._passed_over | late if self._is_terminating(uid)}

    def _has_finished(self, uid: PodUID) -> bool:
        lifecycle = self._registry.get(uid)
        return lifecycle is None or lifecycle.cleaned_up or self._is_unused(lifecycle)

    def _is_terminating(self, uid: PodUID) -> bool:
        lifecycle = self._registry.get(uid)
        return lifecycle is not None and lifecycle.state is PodWorkerState.TERMINATING

    async def _wait_until(self, is_done: Callable[[], bool]) -> None:
        deadline = self._clock.monotonic() + int(CLEANUP_TIMEOUT_SECONDS * _SECOND)
        while not is_done() and self._clock.monotonic() < deadline:
            self._heartbeat()
            await self._clock.wait(CLEANUP_POLL_SECONDS)

    def _is_terminal_on_server(self, uid: PodUID) -> bool:
        pod = self._pods.pod_by_uid(uid)
        return pod is not None and is_terminal_phase(pod.status.phase)

    async def _remove_settled_records(self) -> None:
        """Remove the records of evictions that cannot be lost any more."""
        for uid in self._records.uids():
            lifecycle = self._registry.get(uid)
            if lifecycle is None:
                is_settled = self._all_sources_ready()
            else:
                is_finished = lifecycle.state is PodWorkerState.FINISHED
                is_settled = is_finished and self._is_terminal_on_server(uid)
            if is_settled:
                await self._records.remove(uid)
