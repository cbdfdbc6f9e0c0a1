"""Follow the pods, nodes and leases of a cluster, and the StatusView of them."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec import structs

from podstatus.agent.compose.history import HistoryFile
from podstatus.base.clock import Clock
from podstatus.client.informer.list_watch_calls import ListerWatcher, ObjectSelection
from podstatus.client.informer.object_store import Added, ObjectChange, Removed, Updated
from podstatus.client.informer.reflector import Reflector
from podstatus.client.informer.transform import Transform
from podstatus.client.rest.resources import LEASES, NODES, PODS
from podstatus.client.rest.server_health import ServerHealth
from podstatus.kube.objects.cluster import Lease
from podstatus.kube.objects.node import Node
from podstatus.kube.objects.pod import Pod
from podstatus.node.decide.measured_usage import MeasuredUsage
from podstatus.observe.history.writer import HistoryWriter
from podstatus.observe.ports import Freshness, NodeSummary
from podstatus.observe.snapshot_cache import SnapshotCache
from podstatus.observe.summary.cluster import (
    ClusterNode,
    ClusterPod,
    NodeLease,
    to_cluster_node,
    to_cluster_pod,
    to_node_lease,
)
from podstatus.observe.summary.node import PodTotalsByNode, with_load
from podstatus.observe.summary.pod import PodSummary

LEASE_NAMESPACE = "kube-node-lease"
_SECOND = 1_000_000_000


class ObserverScope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The part of a cluster to observe."""

    namespace: str = ""
    """Empty: all namespaces."""
    selector: str = ""
    """Label selector."""
    node: str = ""
    """Empty: all nodes, and pods that are not scheduled."""

    def __str__(self) -> str:
        where = f"namespace {self.namespace}" if self.namespace else "all namespaces"
        labels = f" with labels {self.selector}" if self.selector else ""
        return f"pods in {where}{labels}{f' on node {self.node}' if self.node else ''}"


class ClusterView:
    """A cache of the observed part of a cluster. Not thread-safe."""

    def __init__(
        self,
        source: ListerWatcher,
        scope: ObserverScope,
        cache: SnapshotCache,
        *,
        clock: Clock,
        history_writer: HistoryWriter[PodSummary] | None,
    ) -> None:
        """`history_writer` records the transitions of pods; None: no history."""
        self.cache = cache
        self.pod_totals = PodTotalsByNode()
        self.nodes_version = object()
        """Another object after a change of a node, heartbeats excepted."""
        self._history_writer = history_writer
        self._clock = clock
        self._renewals: dict[str, tuple[int, float]] = {}
        """Node -> monotonic time (ns) of the last observed renewal, and its age then (s)."""
        self._selection = selection = ObjectSelection(
            PODS,
            namespace=scope.namespace or None,
            label_selector=scope.selector,
            field_selector=f"spec.nodeName={scope.node}" if scope.node else "",
        )
        self._source = source
        self.pods: Reflector[ClusterPod] = Reflector(
            source,
            selection,
            Transform(Pod, self._digest_pod),
            self._pod_changed,
            clock=clock,
        )
        by_name = f"metadata.name={scope.node}" if scope.node else ""
        self.nodes: Reflector[ClusterNode] = Reflector(
            source,
            ObjectSelection(NODES, field_selector=by_name),
            Transform(Node, to_cluster_node),
            self._node_changed,
            clock=clock,
        )
        self.leases: Reflector[NodeLease] = Reflector(
            source,
            ObjectSelection(LEASES, LEASE_NAMESPACE, field_selector=by_name),
            Transform(Lease, to_node_lease),
            self._lease_changed,
            clock=clock,
        )

    async def check_access(self) -> None:
        """List one pod to verify permissions and selectors. Raises ApiError."""
        selection = self._selection
        await self._source.list(
            PODS,
            namespace=selection.namespace,
            label_selector=selection.label_selector,
            field_selector=selection.field_selector,
            limit=1,
        )

    def reflectors(
        self,
    ) -> Iterable[Reflector[ClusterPod] | Reflector[ClusterNode] | Reflector[NodeLease]]:
        """Return the reflectors that the caller has to run."""
        return (self.pods, self.nodes, self.leases)

    @property
    def are_nodes_complete(self) -> bool:
        """Whether the nodes are known, and their leases unless they cannot be read."""
        return self.nodes.has_synced and (self.leases.has_synced or self.leases.is_failing)

    def lease_age(self, node: str) -> float | None:
        """Return the seconds without a renewal of the node's lease; None if it never was renewed.

        Like the node lifecycle controller, this measures from the observation of a renewal with
        the monotonic clock. Only the age of the first observed renewal depends on the wall clock,
        which may differ between machines.

        It is measured up to the last moment when the copy of the leases was confirmed: while the
        API server does not deliver renewals, no node is late because of that.
        """
        renewal = self._renewals.get(node)
        if renewal is None:
            return None
        seen, age = renewal
        confirmed = self._clock.monotonic() - round(self.leases.staleness() * _SECOND)
        return age + max(0, confirmed - seen) / _SECOND

    def _node_changed(self, change: ObjectChange[ClusterNode]) -> None:
        if not isinstance(change, Updated) or change.old.summary != change.new.summary:
            self.nodes_version = object()

    def _lease_changed(self, change: ObjectChange[NodeLease]) -> None:
        match change:
            case Added(lease):
                self._record_renewal(
                    lease, max(0, self._clock.now() - (lease.renewed_at or 0)) / _SECOND
                )
            case Updated(before, lease):
                if before.renewed_at != lease.renewed_at:
                    self._record_renewal(lease, 0.0)
            case Removed(lease):
                self._renewals.pop(lease.metadata.name, None)

    def _record_renewal(self, lease: NodeLease, age: float) -> None:
        if lease.renewed_at is None:
            self._renewals.pop(lease.metadata.name, None)
        else:
            self._renewals[lease.metadata.name] = self._clock.monotonic(), age

    def _digest_pod(self, pod: Pod) -> ClusterPod:
        """Reduce a pod to what is stored; an unchanged summary is shared with the cache."""
        digest = to_cluster_pod(pod)
        entry = self.cache.find(digest.summary.uid)
        if entry is None or entry[1] != digest.summary:
            return digest
        return structs.replace(digest, summary=entry[1])

    def _pod_changed(self, change: ObjectChange[ClusterPod]) -> None:
        match change:
            case Added(pod) | Updated(_, pod):
                self.pod_totals.put(pod.summary.uid, pod.summary.node, pod.requests)
                # A change outside of the summary, such as an annotation, is not recorded.
                if self.cache.put(pod.summary) and self._history_writer is not None:
                    self._history_writer.pod_changed(pod.summary)
            case Removed(pod):
                self.pod_totals.remove(pod.summary.uid)
                self.cache.remove(pod.summary.uid)
                if self._history_writer is not None:
                    self._history_writer.pod_finished(pod.summary)


class ClusterStatusView:
    """Implements `StatusView` for a cluster observer."""

    def __init__(
        self,
        view: ClusterView,
        *,
        server_health: ServerHealth,
        history: HistoryFile[Any],
        usage: Callable[[str], MeasuredUsage],
        clock: Clock,
    ) -> None:
        """`usage` returns the measured usage of a node, by the same clock."""
        self._view = view
        self._usage = usage
        self._clock = clock
        self._server_health = server_health
        self.history = history

    @property
    def snapshot_cache(self) -> SnapshotCache:
        """All observed pods of the cluster."""
        return self._view.cache

    def nodes(self) -> Mapping[str, NodeSummary]:
        """Return the nodes of the cluster, with the requests of the observed pods."""
        return {node.metadata.name: self._node_summary(node) for node in self._view.nodes.objects()}

    def _node_summary(self, node: ClusterNode) -> NodeSummary:
        name = node.metadata.name
        totals = self._view.pod_totals.get(name)
        summary = structs.replace(
            node.summary,
            pods=totals.pods,
            requested=totals.requested,
            lease_age_seconds=self._view.lease_age(name),
        )
        return with_load(summary, self._usage(name), self._clock.monotonic())

    def sync(self) -> None:
        """Return None: an observer sends no statuses."""

    def freshness(self) -> Freshness:
        """Return the time since the API server last answered.

        A server that answers but refuses to list pods counts as unreachable.
        """
        pods, contact = self._view.pods, self._server_health
        is_refused = contact.is_reachable and pods.is_failing and pods.has_synced
        return Freshness(
            server_reachable=contact.is_reachable and pods.has_synced and not pods.is_failing,
            server_age_seconds=pods.staleness() if is_refused else contact.age_seconds,
        )
