"""The StatusView of a node agent: pods, the node, sync progress, freshness, history."""

from collections.abc import Mapping
from operator import is_

from msgspec import structs

from podstatus.agent.compose.dependencies import AgentDependencies
from podstatus.agent.compose.node_services import AgentNodeServices
from podstatus.agent.compose.pod_services import PodServices
from podstatus.kube.objects.pod import Pod, PodUID, is_terminal_phase
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.observe.ports import (
    ContainerUsage,
    Freshness,
    NodeSummary,
    PodSyncProgress,
    SyncState,
)
from podstatus.observe.snapshot_cache import SnapshotCache
from podstatus.observe.summary.node import requested_resources, summarize_node, with_load

_NO_USAGE: ContainerUsage = {}


class NodeStatusView:
    """Implements `StatusView` for a node agent by reading its services."""

    def __init__(
        self,
        dependencies: AgentDependencies,
        pods: PodServices,
        node: AgentNodeServices,
    ) -> None:
        self._pods = pods
        self._node = node
        self._node_cache = dependencies.node_cache
        self._pleg = dependencies.pleg
        self._server_health = dependencies.server_health
        self.history = dependencies.history
        self._clock = dependencies.clock
        self._requested: tuple[list[PodSpec], Mapping[str, str]] = ([], {})

    @property
    def snapshot_cache(self) -> SnapshotCache:
        """All pods of the node, each with its newest status."""
        return self._pods.snapshot_updater.cache

    def nodes(self) -> Mapping[str, NodeSummary]:
        """Return the agent's own Node by name."""
        node = self._node_cache.current()
        running = [pod.spec for pod in self._pods.pod_manager.pods() if not self._has_ended(pod)]
        summary = summarize_node(
            node,
            pods=len(running),
            requested=self._total_requests(running),
            disk_full_in_seconds=self._node.usage.disk_full_in_seconds,
            lease_age_seconds=self._node.lease.age_seconds,
        )
        summary = with_load(summary, self._node.usage.measured, self._clock.monotonic())
        return {summary.name: summary}

    def _has_ended(self, pod: Pod) -> bool:
        status = self._pods.status_manager.latest_status(pod)
        if not is_terminal_phase(status.phase):
            return False
        shown = self._pods.held_back_phases.apply(structs.replace(pod, status=status))
        return is_terminal_phase(shown.status.phase)

    def _total_requests(self, specs: list[PodSpec]) -> Mapping[str, str]:
        """The sum of the requests; cached while the specs are the same objects."""
        before, total = self._requested
        if len(before) != len(specs) or not all(map(is_, before, specs)):
            total = requested_resources(specs)
            self._requested = specs, total
        return total

    def sync(self) -> SyncState:
        """Return how many statuses the API server does not have yet, and their age."""
        now = self._clock.monotonic()
        entries = self._pods.status_manager.entries().values()
        waits = [it for entry in entries if (it := entry.unsent_seconds(now)) is not None]
        counts = self._pods.status_manager.sync_counts()
        return SyncState(
            unsent=len(waits),
            oldest_unsent_seconds=max(waits, default=0.0),
            in_flight=counts.in_flight,
            quarantined=counts.quarantined,
            outbox=counts.outbox,
        )

    def pod_sync(self, uid: PodUID) -> PodSyncProgress | None:
        """Return the sync progress of a pod's status; None if it has no status."""
        entry = self._pods.status_manager.entries().get(uid)
        if entry is None:
            return None
        return PodSyncProgress(
            version=entry.version,
            unsent=len(entry.unsent),
            oldest_unsent_seconds=entry.unsent_seconds(self._clock.monotonic()) or 0.0,
        )

    def container_usage(self) -> ContainerUsage:
        """Return the newest usage of running containers; nothing before the first measurement."""
        snapshot = self._node.usage.snapshot
        return _NO_USAGE if snapshot is None else snapshot.containers

    def freshness(self) -> Freshness:
        """Return the time since the API server and the runtime last answered."""
        return Freshness(
            server_reachable=self._server_health.is_reachable,
            server_age_seconds=self._server_health.age_seconds,
            runtime_age_seconds=self._pleg.age_seconds,
            clock_skew_seconds=self._server_health.clock_skew_seconds,
        )
