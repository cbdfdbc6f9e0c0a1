"""Requests for NodeMetrics and PodMetrics: get and list.

Objects are selected by the labels and fields of the Node or Pod, and only nodes that have one of
the selected pods are read. Nodes and pods without known usage are not in lists, and not found.

Upstream: metrics-server, pkg/api/node.go and pod.go; paging is ignored, as there.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from podstatus.apiserver.handlers.list import build_predicate
from podstatus.apiserver.handlers.responses import ResponseRenderer
from podstatus.apiserver.http import errors
from podstatus.apiserver.http.messages import HttpRequest, Response
from podstatus.apiserver.http.router import ResourcePath
from podstatus.apiserver.resource_metrics.decide.metrics_objects import node_metrics, pod_metrics
from podstatus.apiserver.resource_metrics.decide.node_stats import MeasuredPod, NodeStats
from podstatus.apiserver.resource_metrics.node_stats_cache import NodeStatsCache
from podstatus.apiserver.resources import METRICS_GROUP, NODES, POD_METRICS
from podstatus.apiserver.storage.store import StorageKey, Store, StoredObject
from podstatus.apiserver.strategies.base import Document
from podstatus.base.clock import Clock
from podstatus.base.msgspec_json import decode_json
from podstatus.kube.objects.pod import CONFIG_MIRROR, is_terminal_phase
from podstatus.kube.scalars.time import Time


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""


class _NodeStatus(msgspec.Struct, frozen=True):
    conditions: list[_Condition] | None = None


class _Node(msgspec.Struct, frozen=True):
    status: _NodeStatus = _NodeStatus()


class _PodMetadata(msgspec.Struct, frozen=True):
    uid: str = ""
    annotations: dict[str, str] | None = None


class _Pod(msgspec.Struct, frozen=True):
    metadata: _PodMetadata


class ResourceMetricsHandlers:
    """Answers requests for the resources of `metrics.k8s.io`."""

    def __init__(
        self,
        store: Store,
        stats: NodeStatsCache,
        check_configured: Callable[[], None],
        clock: Clock,
    ) -> None:
        """`check_configured` raises StatusError if nodes cannot be read at all."""
        self._store = store
        self._stats = stats
        self._check_configured = check_configured
        self._clock = clock
        self._renderer = ResponseRenderer(clock)

    async def handle(self, request: HttpRequest, target: ResourcePath) -> Response:
        """Return the metrics of an object or a collection. Raises StatusError."""
        if request.method != "GET":
            raise errors.method_not_allowed()
        self._renderer.check_accept(request)
        if target.name is None:
            return await self._list(request, target)
        metrics = await self._metrics(target, [self._find(target)])
        if not metrics:
            raise _no_metrics(target)
        kind = {"kind": target.resource.kind, "apiVersion": target.resource.api_version}
        return self._renderer.document(request, target, kind | metrics[0])

    async def _list(self, request: HttpRequest, target: ResourcePath) -> Response:
        if request.flag("watch"):
            plural = target.resource.plural
            raise errors.unsupported_verb(plural, "watch", group=METRICS_GROUP)
        metrics = await self._metrics(target, self._selected(request, target))
        return self._renderer.documents(request, target, metrics, {})

    def _selected(self, request: HttpRequest, target: ResourcePath) -> list[StoredObject]:
        predicate = build_predicate(request, target)
        return list(
            filter(predicate, self._store.objects(target.resource.plural, target.namespace))
        )

    def _find(self, target: ResourcePath) -> StoredObject:
        plural, name = target.resource.plural, target.name or ""
        stored = self._store.get(plural, StorageKey(target.namespace or "", name))
        if stored is None:
            raise errors.not_found(plural, name)
        return stored

    async def _metrics(
        self, target: ResourcePath, objects: Sequence[StoredObject]
    ) -> list[Document]:
        if target.resource is POD_METRICS:
            return await self._pod_metrics(objects)
        return await self._node_metrics(objects)

    async def _node_metrics(self, nodes: Sequence[StoredObject]) -> list[Document]:
        stats = await self._collect(nodes)
        now = Time.from_unix_nanos(self._clock.now())
        return [
            node_metrics(node.key.name, node.labels, usage, now)
            for node in nodes
            if (usage := stats.get(node.key.name, NodeStats()).node) is not None
        ]

    async def _pod_metrics(self, pods: Sequence[StoredObject]) -> list[Document]:
        running = [pod for pod in pods if not is_terminal_phase(pod.fields["status.phase"])]
        names = dict.fromkeys(pod.fields["spec.nodeName"] for pod in running)
        nodes = (self._store.get(NODES.plural, StorageKey("", name)) for name in names)
        stats = await self._collect([node for node in nodes if node is not None])
        now = Time.from_unix_nanos(self._clock.now())
        return [
            pod_metrics(*pod.key, pod.labels, usage, now)
            for pod in running
            if (usage := _usage_of(pod, stats.get(pod.fields["spec.nodeName"]))) is not None
        ]

    async def _collect(self, nodes: Iterable[StoredObject]) -> dict[str, NodeStats]:
        # Ready nodes first: others may not answer.
        ordered = sorted(nodes, key=lambda node: not _is_ready(node))
        if ordered:
            self._check_configured()
        return await self._stats.collect({node.key.name: node.document for node in ordered})


def _usage_of(pod: StoredObject, stats: NodeStats | None) -> MeasuredPod | None:
    """Return the usage of this pod, not that of one that had its name before."""
    usage = None if stats is None else stats.pods.get((pod.key.namespace, pod.key.name))
    if usage is None:
        return None
    metadata = decode_json(pod.data, _Pod).metadata
    # A node reports a static pod with the UID of its own.
    is_mirror = CONFIG_MIRROR in (metadata.annotations or {})
    return usage if is_mirror or usage.uid == metadata.uid else None


def _is_ready(node: StoredObject) -> bool:
    conditions = decode_json(node.data, _Node).status.conditions or ()
    return any(each.type == "Ready" and each.status == "True" for each in conditions)


def _no_metrics(target: ResourcePath) -> errors.StatusError:
    name = target.name or ""
    if target.resource is POD_METRICS:
        return errors.not_found("podmetrics", f"{target.namespace}/{name}", group=METRICS_GROUP)
    return errors.not_found("nodemetrics", name, group=METRICS_GROUP)
