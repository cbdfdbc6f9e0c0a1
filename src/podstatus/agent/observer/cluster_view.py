"""Follow the pods, nodes and leases of a cluster: a board, what nodes carry, and a history."""

from collections.abc import Iterable

import msgspec

from podstatus.base.clock import Clock
from podstatus.client.informer.listwatch import ListerWatcher, ObjectSelection
from podstatus.client.informer.reflector import Reflector
from podstatus.client.informer.store import Added, ObjectChange, Removed, Updated
from podstatus.client.informer.transform import Transform
from podstatus.client.rest.resources import LEASES, NODES, PODS
from podstatus.kube.objects.cluster import Lease
from podstatus.kube.objects.node import Node
from podstatus.kube.objects.pod import Pod
from podstatus.observe.history.writer import Scribe
from podstatus.observe.snapshot_cache import Board
from podstatus.observe.summary.cluster import (
    SeenLease,
    SeenNode,
    SeenPod,
    see_lease,
    see_node,
    see_pod,
)
from podstatus.observe.summary.node import NodeLoads
from podstatus.observe.summary.pod import PodSummary

LEASE_NAMESPACE = "kube-node-lease"
_SECOND = 1_000_000_000


class Observed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which part of a cluster."""

    namespace: str = ""
    """Empty: all."""
    selector: str = ""
    """By labels."""
    node: str = ""
    """Empty: all, and pods that are on none."""

    def __str__(self) -> str:
        where = f"namespace {self.namespace}" if self.namespace else "all namespaces"
        labels = f" with labels {self.selector}" if self.selector else ""
        return f"pods of {where}{labels}{f' on node {self.node}' if self.node else ''}"


class ClusterView:
    """What is known of a cluster, kept like its API server has it. For one event loop."""

    def __init__(
        self,
        source: ListerWatcher,
        observed: Observed,
        board: Board,
        *,
        clock: Clock,
        scribe: Scribe[PodSummary] | None = None,
    ) -> None:
        """`scribe` is told what happens to pods."""
        self.board = board
        self.loads = NodeLoads()
        self._scribe = scribe
        self._clock = clock
        self._renewals: dict[str, tuple[int, float]] = {}
        """By node: when its lease was seen to be renewed, and how many seconds old it was then."""
        self._asked = asked = ObjectSelection(
            resource=PODS,
            namespace=observed.namespace or None,
            label_selector=observed.selector,
            field_selector=f"spec.nodeName={observed.node}" if observed.node else "",
        )
        self._source = source
        self.pods: Reflector[SeenPod] = Reflector(
            source,
            PODS,
            Transform(Pod, self._see_pod),
            self._pod_changed,
            namespace=asked.namespace,
            label_selector=asked.label_selector,
            field_selector=asked.field_selector,
            clock=clock,
        )
        by_name = f"metadata.name={observed.node}" if observed.node else ""
        self.nodes: Reflector[SeenNode] = Reflector(
            source, NODES, Transform(Node, see_node), _nothing, field_selector=by_name, clock=clock
        )
        self.leases: Reflector[SeenLease] = Reflector(
            source,
            LEASES,
            Transform(Lease, see_lease),
            self._lease_changed,
            namespace=LEASE_NAMESPACE,
            field_selector=by_name,
            clock=clock,
        )

    async def look_once(self) -> None:
        """Ask for one pod, to see whether we may. Raises ApiError."""
        asked = self._asked
        await self._source.list(
            PODS,
            namespace=asked.namespace,
            label_selector=asked.label_selector,
            field_selector=asked.field_selector,
            limit=1,
        )

    def services(self) -> Iterable[Reflector[SeenPod] | Reflector[SeenNode] | Reflector[SeenLease]]:
        """What has to run."""
        return (self.pods, self.nodes, self.leases)

    def lease_age(self, node: str) -> float | None:
        """Seconds since its lease was renewed; None if it never was.

        As the node lifecycle controller reckons: since a renewal was seen, by the monotonic clock.
        Only the first that is seen is compared with the time, which two machines may not agree on.
        """
        renewal = self._renewals.get(node)
        if renewal is None:
            return None
        seen, age = renewal
        return age + (self._clock.monotonic() - seen) / _SECOND

    def _lease_changed(self, change: ObjectChange[SeenLease]) -> None:
        match change:
            case Added(lease):
                self._renewed(lease, max(0, self._clock.now() - (lease.renewed or 0)) / _SECOND)
            case Updated(before, lease):
                if before.renewed != lease.renewed:
                    self._renewed(lease, 0.0)
            case Removed(lease):
                self._renewals.pop(lease.metadata.name, None)

    def _renewed(self, lease: SeenLease, age: float) -> None:
        if lease.renewed is None:
            self._renewals.pop(lease.metadata.name, None)
        else:
            self._renewals[lease.metadata.name] = self._clock.monotonic(), age

    def _see_pod(self, pod: Pod) -> SeenPod:
        """What is kept of a pod; a summary that is on the board is not kept twice."""
        seen = see_pod(pod)
        shown = self.board.find(seen.summary.uid)
        if shown is None or shown[1] != seen.summary:
            return seen
        return msgspec.structs.replace(seen, summary=shown[1])

    def _pod_changed(self, change: ObjectChange[SeenPod]) -> None:
        match change:
            case Added(pod) | Updated(_, pod):
                self.loads.put(pod.summary.uid, pod.summary.node, pod.requests)
                # What nobody is shown, such as an annotation, is no news.
                if self.board.put(pod.summary) and self._scribe is not None:
                    self._scribe.told(pod.summary)
            case Removed(pod):
                self.loads.remove(pod.summary.uid)
                self.board.remove(pod.summary.uid)
                if self._scribe is not None:
                    self._scribe.gone(pod.summary)


def _nothing(_: object) -> None:
    """Nobody has to be told: who wants to know looks."""
