"""The StatusView of a cluster observer: pods, nodes, freshness, history."""

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from podstatus.agent.compose.history import HistoryFile
from podstatus.agent.observer.cluster_view import ClusterView
from podstatus.client.rest.server_health import ServerHealth
from podstatus.observe.history.sqlite_store import HistoryEntry
from podstatus.observe.ports import Freshness, HistoryCounts, NodeSummary
from podstatus.observe.snapshot_cache import SnapshotCache
from podstatus.observe.summary.cluster import ClusterNode


class ClusterStatusView:
    """Implements `StatusView` for a cluster observer."""

    def __init__(
        self, view: ClusterView, *, server_health: ServerHealth, history: HistoryFile[Any]
    ) -> None:
        self._view = view
        self._server_health = server_health
        self._history = history

    @property
    def snapshot_cache(self) -> SnapshotCache:
        """All observed pods of the cluster."""
        return self._view.cache

    def nodes(self) -> Mapping[str, NodeSummary]:
        """Return the nodes of the cluster, with the requests of the observed pods."""
        return {node.metadata.name: self._node_summary(node) for node in self._view.nodes.objects()}

    def _node_summary(self, node: ClusterNode) -> NodeSummary:
        name = node.metadata.name
        load = self._view.loads.get(name)
        return structs.replace(
            node.summary,
            pods=load.pods,
            requested=load.requested,
            lease_age_seconds=self._view.lease_age(name),
        )

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

    def history(self) -> HistoryCounts:
        """Return the counts of history entries."""
        return self._history.counts

    async def timeline(self, namespace: str, name: str, *, after: int = 0) -> list[HistoryEntry]:
        """Return the history of all pods with this name. Raises HistoryError."""
        return await self._history.timeline(namespace, name, after=after)

    async def transitions(self, after: int, *, limit: int) -> list[HistoryEntry]:
        """Return history entries of all pods with an id above `after`. Raises HistoryError."""
        return await self._history.transitions(after, limit=limit)
