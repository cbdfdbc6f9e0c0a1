"""Composition of the embedded API server: storage, handlers, controllers, listener."""

import asyncio
import re
import secrets
import ssl
from functools import partial

import msgspec

from podstatus.apiserver.controllers.base import ChangeFollower
from podstatus.apiserver.controllers.decide.policy import NodeMonitorPolicy
from podstatus.apiserver.controllers.kubernetes_service import KubernetesServiceController
from podstatus.apiserver.controllers.namespace_defaults import NamespaceDefaultsController
from podstatus.apiserver.controllers.namespaces import NamespaceController
from podstatus.apiserver.controllers.node_lifecycle import NodeLifecycleController
from podstatus.apiserver.controllers.node_monitor import NodeMonitor
from podstatus.apiserver.controllers.pod_gc import PodGarbageCollector
from podstatus.apiserver.controllers.scheduler import Scheduler
from podstatus.apiserver.controllers.taint_eviction import TaintEvictionController
from podstatus.apiserver.discovery.discovery import groups
from podstatus.apiserver.discovery.endpoints import find_endpoint
from podstatus.apiserver.faults.middleware import FaultInjection
from podstatus.apiserver.generic_registry import Registry
from podstatus.apiserver.handlers.objects import ObjectHandlers
from podstatus.apiserver.handlers.reviews import ReviewHandler
from podstatus.apiserver.http import errors
from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.http.messages import HttpRequest, Response, StreamResponse, WebSocketProxy
from podstatus.apiserver.http.router import parse_path
from podstatus.apiserver.kubelet.kubelet_client import KubeletClient, KubeletClientConfig
from podstatus.apiserver.kubelet.proxy import KubeletProxy
from podstatus.apiserver.kubelet.stats_reader import KubeletStatsReader
from podstatus.apiserver.listener import Listener
from podstatus.apiserver.resource_metrics.handlers import ResourceMetricsHandlers
from podstatus.apiserver.resource_metrics.node_stats_cache import NodeStatsCache
from podstatus.apiserver.resources import NAMESPACES
from podstatus.apiserver.service_accounts.authenticator import Authenticator
from podstatus.apiserver.service_accounts.token_request import TokenRequestHandler
from podstatus.apiserver.storage.store import StorageError, StorageKey, Store, StoreChange
from podstatus.apiserver.storage.watch_cache import WatchCache
from podstatus.apiserver.strategies.by_resource import STRATEGIES
from podstatus.base.system_clock import SystemClock

_PORT_FORWARD_PATH = re.compile(r"/api/v1/namespaces/[^/]+/pods/[^/]+/portforward")
SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


class ApiServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where the server listens, and what it does besides serving objects."""

    host: str = "127.0.0.1"
    port: int = 0
    """0 for any free port."""
    faults: bool = False
    """Fault injection at /podstatus/faults, for clients with the token."""
    schedule: bool = False
    """Run the scheduler, the controllers of silent nodes (conditions, taints, evictions, pods of
    removed nodes) and, if there is an `authority`, the controller that creates the default objects
    of namespaces."""
    node_monitor: NodeMonitorPolicy = NodeMonitorPolicy()
    """When a node is silent, and how fast pods are evicted then."""
    authority: bytes = b""
    """The CA certificate of this server (PEM), for clients in pods."""
    signing_key: bytes = msgspec.field(default_factory=partial(secrets.token_bytes, 32))
    """Signs the tokens of service accounts."""
    kubelet: KubeletClientConfig = KubeletClientConfig()
    """How to connect to kubelets, for logs and exec."""


class ApiServer:
    """Serves a store over HTTPS; over plain HTTP without an SSL context, for tests."""

    def __init__(
        self,
        store: Store,
        *,
        token: str,
        ssl_context: ssl.SSLContext | None,
        options: ApiServerOptions | None = None,
    ) -> None:
        clock = SystemClock()
        options = options or ApiServerOptions()
        self._store = store
        self._watch_cache = WatchCache(store.version)
        self._registry = Registry(store, STRATEGIES, clock)
        self._kubelet_client = KubeletClient(options.kubelet)
        authenticator = Authenticator(
            store, owner_token=token, signing_key=options.signing_key, clock=clock
        )
        self._object_handlers = ObjectHandlers(
            store,
            self._watch_cache,
            self._registry,
            KubeletProxy(self._registry, self._kubelet_client),
            TokenRequestHandler(self._registry, options.signing_key, clock),
            clock,
        )
        stats = KubeletStatsReader(self._kubelet_client)
        self._metrics_handlers = ResourceMetricsHandlers(
            store, NodeStatsCache(stats.read, clock), stats.check_configured, clock
        )
        self._reviews = ReviewHandler(authenticator)
        self._faults = FaultInjection(self._handle, self.compact, clock) if options.faults else None
        handle = self._handle if self._faults is None else self._faults.handle
        self._host = options.host
        self._listener = Listener(
            handle,
            authenticator=authenticator,
            ssl_context=ssl_context,
            host=options.host,
            port=options.port,
        )
        self._kubernetes_service = KubernetesServiceController(store, self._registry, clock)
        self._controllers: list[ChangeFollower] = [
            NamespaceController(store, self._registry, clock),
            self._kubernetes_service,
        ]
        if options.schedule and options.authority:
            self._controllers.append(
                NamespaceDefaultsController(store, self._registry, clock, options.authority)
            )
        if options.schedule:
            self._controllers += [
                NodeLifecycleController(store, self._registry, clock),
                NodeMonitor(store, self._registry, clock, options.node_monitor),
                TaintEvictionController(store, self._registry, clock),
                PodGarbageCollector(store, self._registry, clock),
                Scheduler(store, self._registry, clock),
            ]
        self._tasks: set[asyncio.Task[None]] = set()
        store.listener = self._publish

    async def start(self) -> int:
        """Start to serve; return the port."""
        for name in SYSTEM_NAMESPACES:
            self._ensure_namespace(name)
        for controller in self._controllers:
            self._tasks.add(asyncio.create_task(controller.run()))
        port = await self._listener.start()
        self._kubernetes_service.publish(self._host, port)
        return port

    async def stop(self) -> None:
        """Stop controllers, watches and connections."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._faults is not None:
            self._faults.clear()
        self._watch_cache.close()
        await self._kubelet_client.close()
        await self._listener.stop()

    def compact(self) -> None:
        """Forget all changes up to now: watches that start at one of them expire."""
        self._watch_cache.compact()

    def _publish(self, resource: str, change: StoreChange) -> None:
        self._watch_cache.publish(resource, change)
        for controller in self._controllers:
            controller.on_change(resource, change)

    async def _handle(self, request: HttpRequest) -> Response | StreamResponse | WebSocketProxy:
        target = parse_path(request.path)
        if target is not None and target.resource.computed:
            return await self._metrics_handlers.handle(request, target)
        if target is not None:
            try:
                return await self._object_handlers.handle(request, target)
            except StorageError as error:
                raise StatusError(503, "ServiceUnavailable", str(error)) from error
        review = self._reviews.handle(request)
        if review is not None:
            return review
        page = find_endpoint(request.path, request.accept)
        if page is not None:
            if request.method not in ("GET", "HEAD"):
                raise errors.method_not_allowed()
            return page
        if _PORT_FORWARD_PATH.fullmatch(request.path):
            raise errors.port_forward_unsupported()
        if _is_api_group_path(request.path):
            raise errors.no_such_resource()
        return Response(code=404, body=b"404 page not found\n", content_type="text/plain")

    def _ensure_namespace(self, name: str) -> None:
        if self._store.get(NAMESPACES.plural, StorageKey("", name)) is None:
            target = parse_path("/api/v1/namespaces")
            assert target is not None  # noqa: S101 - it is in the table of resources
            namespace = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}}
            self._registry.create(target, namespace)


def _is_api_group_path(path: str) -> bool:
    """True for a path in an existing API group, whether or not the resource exists."""
    return path.startswith(("/api/", *(f"/apis/{group}/" for group in groups() if group)))
