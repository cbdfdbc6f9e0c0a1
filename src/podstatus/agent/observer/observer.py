"""Build the cluster observer and run it."""

import asyncio
import ctypes
import gc
import logging
import platform
import random
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, suppress
from typing import cast, get_args

from podstatus import __version__
from podstatus.agent.compose.history import HistoryFile, history_retention
from podstatus.agent.compose.kubelet_server import KubeletServer
from podstatus.agent.daemon.endpoints_file import RootDirError
from podstatus.agent.daemon.run_agent import AgentContext, ListenAddresses
from podstatus.agent.errors import EXIT_CONFIG, AgentError
from podstatus.agent.observer.alerts import AlertedView, ObserverAlerts
from podstatus.agent.observer.cluster_view import ClusterStatusView, ClusterView, ObserverScope
from podstatus.agent.observer.leadership import Leadership
from podstatus.agent.observer.observed_scope import history_start
from podstatus.agent.observer.settings import (
    AGENT_SETTINGS_OF_OBSERVERS,
    OBSERVER_SETTINGS,
    ObserverSettings,
)
from podstatus.agent.settings.export import export_flags
from podstatus.alerts.metrics import alert_metrics, leader_metric
from podstatus.alerts.ports import AlertReader
from podstatus.alerts.service.alert_service import Readiness
from podstatus.base.clock import Clock
from podstatus.base.service_heartbeats import Heartbeats
from podstatus.base.system_clock import SystemClock
from podstatus.client import ApiClient
from podstatus.client.rest.server_health import ServerHealth
from podstatus.client.typed.node_usage import HttpNodeUsage
from podstatus.kube.api_errors import ApiError, BusyError, DeniedError, UnavailableError
from podstatus.kube.objects.meta import ObjectReference
from podstatus.node.decide.measured_usage import MeasuredUsage
from podstatus.node.machine.system_info import kubelet_version
from podstatus.observe.history.node_recorder import NodeRecorder
from podstatus.observe.history.sqlite_store import History, HistoryError
from podstatus.observe.history.writer import SummaryHistoryWriter
from podstatus.observe.metrics.exposition import MetricPages
from podstatus.observe.metrics.model import LazySamples, Samples
from podstatus.observe.metrics.podstatus_collector import (
    podstatus_metrics,
    process_metrics,
    service_metrics,
)
from podstatus.observe.metrics.sli_collector import HealthCheckCollector
from podstatus.observe.node_usage_collector import NodeUsageCollector, UsageMethod
from podstatus.observe.snapshot_cache import SnapshotCache
from podstatus.web.handlers import HandlerDependencies
from podstatus.web.kubelet.health import HealthCheck, healthy, heartbeat_checks
from podstatus.web.ports import AgentDescription
from podstatus.web.routes import OBSERVER_ROUTES


def trim_heap() -> None:
    """Return freed memory to the system with malloc_trim, if the C library has it (glibc)."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


logger = logging.getLogger(__name__)

RBAC = "examples/observer-rbac.yaml"
_CONNECT_SECONDS = 5.0
_FIRST_LIST_SECONDS = 30.0
"""A list of 5,000 pods takes 2 to 3 s. Until then responses say that the data is incomplete."""
_RETRY_SECONDS = 1.0
_HISTORY_POLL_SECONDS = 0.5
HEAP_TRIMMED = "returned the memory of the initial list to the operating system"


class ClusterObserver:
    """The cluster observer: all its services, connected. It changes no pods and nodes."""

    def __init__(
        self, context: AgentContext, scope: ObserverScope, own: ObserverSettings, clock: Clock
    ) -> None:
        settings, root = context.settings, context.root
        self._own = own
        self._context = context
        self._scope = scope
        self._clock = clock
        self._heartbeats = Heartbeats(clock)
        self._connect_error = ""
        """Why the last request to the API server failed."""
        health = ServerHealth(clock)
        self._client = ApiClient(context.access, user_agent="podstatus/observe", health=health)
        self._history = HistoryFile(settings, root.path, self._build_history_writer)
        self.view = ClusterView(
            self._client, scope, SnapshotCache(), clock=clock, history_writer=self._history.writer
        )
        self._node_usage = self._build_node_usage()
        self.status_view = ClusterStatusView(
            self.view,
            server_health=health,
            history=self._history,
            usage=self._usage_of,
            clock=clock,
        )
        # Clients need permission for all nodes: the observer is none of them.
        self._server = KubeletServer(
            settings, context.server_files, self._client, clock, node_name=""
        )
        self._leadership = (
            Leadership(own, context.access, self._heartbeats, clock) if own.leader_elect else None
        )
        self._alerts = self._build_alerts()
        self._metric_pages = MetricPages(
            {"": self._metrics, "slis": HealthCheckCollector(self._checks)}
        )
        self._handler_dependencies = HandlerDependencies(
            checks=self._checks,
            routes=OBSERVER_ROUTES,
            logs=root.folder("logs"),
            view=self.status_view,
            alerts=self.alerts,
            agent_info=self._about_agent(),
            metrics=self._metric_pages,
        )

    def _build_node_usage(self) -> NodeUsageCollector | None:
        method = self._own.node_usage
        if method not in get_args(UsageMethod):
            return None
        return NodeUsageCollector(
            HttpNodeUsage(self._client),
            lambda: [node.metadata.name for node in self.view.nodes.objects()],
            method=cast(UsageMethod, method),
            clock=self._clock,
            random=random.random,
            heartbeat=self._heartbeats.register(
                "node-usage", max_silent_seconds=180, is_vital=False
            ),
        )

    def _usage_of(self, node: str) -> MeasuredUsage:
        return MeasuredUsage() if self._node_usage is None else self._node_usage.usage(node)

    def _build_alerts(self) -> ObserverAlerts | None:
        """Raises AgentError for rules that an observer cannot have."""
        context, view = self._context, self.view
        if context.alert_rules is None:
            return None
        return ObserverAlerts(
            context,
            context.alert_rules,
            self._client,
            AlertedView(
                self.status_view,
                Readiness(pods=lambda: view.pods.has_synced, nodes=lambda: view.are_nodes_complete),
            ),
            heartbeats=self._heartbeats,
            clock=self._clock,
            url=lambda: self._server.url,
            leadership=self._leadership,
        )

    @property
    def alerts(self) -> AlertReader | None:
        """The alerts of the cluster; None if alerts are disabled."""
        return None if self._alerts is None else self._alerts.service

    def _build_history_writer(self, history: History) -> SummaryHistoryWriter:
        return SummaryHistoryWriter(
            history,
            clock=self._clock,
            retention=history_retention(self._context.settings),
            heartbeat=self._heartbeats.register("history", max_silent_seconds=120),
        )

    def _build_node_recorder(self, writer: SummaryHistoryWriter) -> NodeRecorder:
        return NodeRecorder(
            self.status_view.nodes,
            writer,
            version=lambda: self.view.nodes_version,
            clock=self._clock,
        )

    async def run(self, on_serving: Callable[[ListenAddresses], None]) -> None:
        """Run until cancelled; call `on_serving` once it serves. Raises AgentError."""
        async with AsyncExitStack() as stack:
            stack.callback(self._history.close)
            stack.callback(self._metric_pages.close)
            if self._alerts is not None:
                stack.push_async_callback(self._alerts.close)
            await stack.enter_async_context(self._client)
            is_reachable = await self._check_access()
            # Before the initial list, so that a port in use is reported at once.
            url = await self._server.start(self._handler_dependencies)
            stack.push_async_callback(self._server.stop)
            previous_pods = await self._previous_pods()
            async with asyncio.TaskGroup() as tasks:
                if self._history.writer is not None:
                    tasks.create_task(self._history.writer.run(), name="history")
                    recorder = self._build_node_recorder(self._history.writer)
                    tasks.create_task(recorder.run(), name="node-history")
                tasks.create_task(
                    self._follow(is_reachable=is_reachable, previous_pods=previous_pods),
                    name="cluster",
                )
                if self._alerts is not None:
                    tasks.create_task(self._alerts.run(), name="alerts")
                if is_reachable:
                    await self._wait_first_list()
                on_serving(ListenAddresses(agent=url, observes=True))

    async def _wait_first_list(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_LIST_SECONDS):
                await self.view.pods.wait_synced()

    async def _check_access(self) -> bool:
        """Return True if the API server answers. Raises AgentError if it denies access."""
        try:
            return await self._is_reachable()
        except ApiError as error:
            denied = isinstance(error, DeniedError)
            hint = f"required permissions: {RBAC}" if denied else "check the selectors"
            raise AgentError(f"cannot list pods: {error}; {hint}", code=EXIT_CONFIG) from error

    async def _is_reachable(self) -> bool:
        """Return True if the API server answers. Raises ApiError if it refuses."""
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                await self.view.check_access()
        except (UnavailableError, BusyError, TimeoutError) as error:
            self._connect_error = str(error) or f"no answer within {_CONNECT_SECONDS:g} s"
            return False
        return True

    async def _follow(self, *, is_reachable: bool, previous_pods: list[ObjectReference]) -> None:
        if not is_reachable:
            await self._wait_for_server()
        async with asyncio.TaskGroup() as tasks:
            for reflector in self.view.reflectors():
                tasks.create_task(reflector.run())
            if self._node_usage is not None:
                tasks.create_task(self._follow_usage(self._node_usage), name="node usage")
            await self.view.pods.wait_synced()
            self._record_missing(previous_pods)
            await self._wait_history_written()
            trim_heap()
            logger.info("%s", HEAP_TRIMMED)

    async def _follow_usage(self, node_usage: NodeUsageCollector) -> None:
        await self.view.nodes.wait_synced()
        await node_usage.run()

    async def _wait_history_written(self) -> None:
        """Wait until all that the first list showed is noted."""
        while self._history.writer is not None and self._history.writer.counts.waiting:
            await self._clock.wait(_HISTORY_POLL_SECONDS)

    async def _wait_for_server(self) -> None:
        logger.warning(
            "API server is not reachable, will retry: error=%s",
            self._connect_error,
        )
        server = self._context.access.server
        try:
            while not await self._is_reachable():
                await self._clock.wait(_RETRY_SECONDS)
        except ApiError as error:
            # A server that has just started may not have loaded RBAC yet; the reflectors retry.
            logger.warning(
                "API server denied access, will retry: server=%s error=%s", server, error
            )
        else:
            logger.info("API server is reachable: server=%s", server)

    async def _previous_pods(self) -> list[ObjectReference]:
        """The pods that existed when the last observer of the same scope stopped.

        On cancellation the reading thread is awaited, since the history is closed afterwards.
        """
        history = self._history.store
        if history is None:
            return []
        reading = asyncio.create_task(asyncio.to_thread(self._unfinished, history))
        try:
            return await asyncio.shield(reading)
        except asyncio.CancelledError:
            await asyncio.wait({reading})
            raise

    def _unfinished(self, history: History) -> list[ObjectReference]:
        root, server = self._context.root, self._context.access.server
        try:
            after = history_start(root, server, self._scope, newest=history.newest_id())
            return history.unfinished_pods(after=after)
        except (RootDirError, HistoryError) as error:
            logger.warning("cannot record pods removed during downtime: error=%s", error)
        return []

    def _record_missing(self, previous_pods: list[ObjectReference]) -> None:
        """Record the end of previous pods that were removed while no observer ran."""
        current = self.view.cache.pods()
        for pod in previous_pods:
            if pod.uid not in current and self._history.writer is not None:
                self._history.writer.pod_finished(pod)

    def _checks(self) -> dict[str, HealthCheck]:
        checks = heartbeat_checks(self._heartbeats)
        if self._context.settings.history:
            stalled = checks.get("history", healthy)
            checks["history"] = lambda: stalled() or self._history.health()
        return checks

    def _metrics(self) -> Iterator[Samples | LazySamples]:
        yield from podstatus_metrics(self.status_view, self._clock)
        yield from service_metrics(self._heartbeats)
        yield from process_metrics()
        if self._alerts is not None:
            yield from alert_metrics(self._alerts.service)
        if self._leadership is not None:
            yield leader_metric(self._leadership.lease_name, leads=self._leadership.is_leading)

    def _about_agent(self) -> AgentDescription:
        scope = {
            "namespace": self._scope.namespace,
            "selector": self._scope.selector,
            "node": self._scope.node,
        }
        return AgentDescription(
            version=__version__,
            kubernetes=kubelet_version(__version__),
            python=platform.python_version(),
            started=self._clock.now(),
            configuration={},
            flags=export_flags(self._context.settings, AGENT_SETTINGS_OF_OBSERVERS)
            | export_flags(self._own, OBSERVER_SETTINGS)
            | scope,
        )


def build_observer(
    context: AgentContext, scope: ObserverScope, own: ObserverSettings
) -> ClusterObserver:
    """Build the observer without starting it. Raises AgentError."""
    return ClusterObserver(context, scope, own, SystemClock())
