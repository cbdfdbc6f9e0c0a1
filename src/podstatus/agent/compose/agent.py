"""Build the services of a node and run them."""

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from podstatus.agent.compose.alerts import AlertServices
from podstatus.agent.compose.drain import NodeDrain, drain_node
from podstatus.agent.compose.history import AgentHistory
from podstatus.agent.compose.kubelet_server import AgentPods, KubeletServer
from podstatus.agent.compose.metric_pages import build_metric_pages
from podstatus.agent.compose.node_services import AgentNodeServices
from podstatus.agent.compose.pod_services import PodDependencies, PodServices
from podstatus.agent.compose.pod_sources import SourceServices, source_names
from podstatus.agent.compose.runtime import (
    RuntimeDependencies,
    build_process_runtime,
    find_runtime,
    open_process_runtime,
)
from podstatus.agent.compose.start_server import start_server
from podstatus.agent.compose.status_view import NodeStatusView
from podstatus.agent.daemon.restart_services import run_with_restarts
from podstatus.agent.daemon.run_agent import EXIT_CONFIG, AgentContext, AgentError, ListenAddresses
from podstatus.agent.daemon.sample_pods import create_sample_pods
from podstatus.agent.settings.export import about_agent
from podstatus.agent.settings.model import AgentSettings
from podstatus.agent.settings.schema.scalars import PROCESS
from podstatus.alerts.actions.node_taints import AlertTaints
from podstatus.base.clock import Clock
from podstatus.base.service_heartbeats import Heartbeats
from podstatus.base.system_clock import SystemClock
from podstatus.checkpoint.allocation_checkpoint import FileState
from podstatus.checkpoint.errors import CheckpointError
from podstatus.checkpoint.outbox_files import FileOutbox
from podstatus.client import ApiClient, HttpNodeApi, HttpPodApi, RateLimiter, Timeouts
from podstatus.client.rest.server_health import ServerHealth
from podstatus.client.typed.events import HttpEventSink
from podstatus.events import reasons
from podstatus.events.rate_limits import EventPolicy
from podstatus.events.recorder import EventRecorder
from podstatus.kube.objects.node import Taint
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.runtime_facts import ContainerRunState
from podstatus.node.decide.conditions import AlertCondition
from podstatus.observe.metrics.watch_counters import WatchCounts
from podstatus.observe.metrics.work_counters import WorkCounts
from podstatus.runtime.instrumented import instrument
from podstatus.runtime.pleg import Pleg
from podstatus.runtime.port import ContainerStats, ReportsProbes, Runtime
from podstatus.runtime.process.process_runtime import ProcessRuntime
from podstatus.runtime.process.volume_refresher import Refresher
from podstatus.status.ports import OutboxEntry
from podstatus.web.handlers import HandlerDependencies
from podstatus.web.kubelet.health import HealthCheck, HealthListener, heartbeat_checks

logger = logging.getLogger(__name__)

_DRAIN_SECONDS = 2.0
"""Time to send pending statuses and events at a stop. The embedded API server then has 1.5 s to
stop, and the whole agent has 5 s."""
_PROBE_RETRY_SECONDS = 1.0
"""Delay before reading probe results again after the runtime's stream of them failed."""
_LEASE_TIMING = Timeouts(total_seconds=10.0)


class NodeAgent:
    """The node agent: all services of a node, connected."""

    def __init__(
        self,
        context: AgentContext,
        runtime: Runtime | None = None,
        clock: Clock | None = None,
        heartbeats: Heartbeats | None = None,
    ) -> None:
        self._settings = settings = context.settings
        self._context = context
        self._server: KubeletServer | None = None
        self._alerts: AlertServices | None = None
        self._clock = clock = clock or SystemClock()
        self._heartbeats = heartbeats or Heartbeats(clock)
        # Separate clients: lease and node status never queue behind pod statuses or events.
        access, contact = context.access, ServerHealth(clock)
        self._pod_client = ApiClient(
            access, user_agent=_user_agent("status"), limit=_rate_limit(settings), health=contact
        )
        self._node_client = ApiClient(
            access, timeouts=_LEASE_TIMING, user_agent=_user_agent("node"), health=contact
        )
        self._event_client = ApiClient(access, user_agent=_user_agent("events"), health=contact)
        self._history = AgentHistory(settings, context.root.path, clock)
        self._recorder = EventRecorder(
            HttpEventSink(self._event_client),
            host=settings.node_name,
            clock=clock,
            policy=EventPolicy(qps=settings.event_qps, burst=settings.event_burst),
            heartbeat=self._heartbeats.register("events", max_silent_seconds=300),
            on_recorded=self._history.record_event,
        )
        self._runtime = runtime or self._build_runtime(context.root.folder("runtime"))
        work = WorkCounts()
        counted = instrument(self._runtime, work, clock)
        self._pleg = Pleg(
            counted,
            clock=clock,
            on_change=self._wake_pod,
            heartbeat=self._heartbeats.register("relist", max_silent_seconds=180),
            observer=work,
        )
        drains = NodeDrain()
        self._node = AgentNodeServices(
            settings,
            self._node_client,
            counted,
            self._recorder,
            runtime_problem=self._pleg.unhealthy_reason,
            shutting_down=drains.problem,
            on_recovered=self._reconcile,
            heartbeats=self._heartbeats,
            clock=clock,
            port=self._server_port,
            alert_conditions=self._alert_conditions,
        )
        self._pods = PodServices(
            PodDependencies(
                settings=settings,
                clock=clock,
                heartbeats=self._heartbeats,
                recorder=self._recorder,
                current_node=self._node.node_cache.current,
                host_ips=self._node.host_ips,
                source_names=source_names(settings),
                on_mirror=self._wake_mirror_controller,
                rejection=drains.rejection,
                history=self._history,
                on_pod_changed=self._update_snapshot,
                work_counts=work,
            ),
            counted,
            self._pleg,
            HttpPodApi(self._pod_client),
            FileState(context.root.folder("checkpoints")),
            FileOutbox(context.root.folder("outbox"), OutboxEntry),
        )
        if self._history.downtime is not None:
            self._pods.status_manager.add_notifier(self._history.downtime)
        self.status_view = NodeStatusView(
            self._pods,
            self._node,
            self._pleg,
            server_health=contact,
            history=self._history,
            clock=clock,
        )
        self._taints = AlertTaints(
            HttpNodeApi(self._node_client),
            self._node.node_cache,
            self._node.events,
            desired=self._desired_taints,
            clock=clock,
        )
        self._alerts = self._build_alerts(context)
        alerts = None if self._alerts is None else self._alerts.service
        self._metric_pages = build_metric_pages(
            settings.node_name,
            work,
            self._pods,
            self._node,
            self._pleg,
            self._recorder,
            self.status_view,
            alerts=alerts,
            requests=contact.requests,
            watch_counts=(watching := WatchCounts()),
            has_container_stats=isinstance(counted, ContainerStats),
            heartbeats=self._heartbeats,
            checks=self._checks,
            clock=clock,
        )
        self._shutdown = drains.build(settings, self._pods, self._node, self._pleg, clock)
        if context.server_files is not None:
            sources = HandlerDependencies(
                pods=AgentPods(self._pods.pod_manager, self._pods.status_manager, self._pleg),
                runtime=counted,
                checks=self._checks,
                drain=self._shutdown,
                logs=context.root.folder("logs"),
                view=self.status_view,
                alerts=alerts,
                usage=self._node.usage,
                agent_info=about_agent(settings, clock.now()),
                metrics=self._metric_pages,
                watch_counts=watching,
            )
            self._server = KubeletServer(
                settings, context.server_files, sources, self._event_client, clock
            )
        self._sources = SourceServices(
            settings,
            context.root,
            self._pod_client,
            self._pods,
            self._node,
            self._recorder,
            self._runtime,
            heartbeats=self._heartbeats,
            clock=clock,
        )

    def _build_alerts(self, context: AgentContext) -> AlertServices | None:
        if context.alert_rules is None:
            return None
        alerts = AlertServices(
            self._settings,
            context.root.path,
            context.alert_rules,
            self.status_view,
            self._pods,
            self._node,
            self._taints,
            self._pleg,
            self._recorder,
            self._node_client,
            is_synced=lambda: self._pods.mux.all_sources_ready and self.status_view.updater.is_idle,
            url=lambda: "" if self._server is None else self._server.url,
            heartbeat=self._heartbeats.register("alerts", max_silent_seconds=60, is_vital=False),
            clock=self._clock,
        )
        self._history.on_foreign_write = alerts.service.foreign_write
        return alerts

    def _build_runtime(self, folder: Path) -> Runtime:
        """Build the runtime of `--runtime`. Raises AgentError."""
        if self._settings.runtime != PROCESS:
            return find_runtime(self._settings.runtime, folder, self._clock)
        return build_process_runtime(
            RuntimeDependencies(
                settings=self._settings,
                folder=folder,
                client=self._pod_client,
                recorder=self._recorder,
                host_ips=lambda: self._node.host_ips(),  # noqa: PLW0108 - built later
                allocatable=lambda: self._node.node_cache.current().status.allocatable or {},
                clock=self._clock,
            )
        )

    async def run(self, on_serving: Callable[[ListenAddresses], None]) -> None:
        """Run until cancelled; call `on_serving` once all servers listen. Raises AgentError."""
        async with AsyncExitStack() as stack:
            if isinstance(self._runtime, ProcessRuntime):
                stack.callback(self._runtime.close)
                await open_process_runtime(self._runtime)
            stack.callback(self._history.close)
            stack.callback(self._metric_pages.close)
            if self._alerts is not None:
                stack.push_async_callback(self._alerts.close)
            for client in (self._pod_client, self._node_client, self._event_client):
                await stack.enter_async_context(client)
            await self._sources.check_server()
            addresses = ListenAddresses(
                health=await self._start_health_listener(stack),
                agent=await start_server(self._server, stack),
            )
            try:
                syncing = self._pods.status_manager.run()
            except CheckpointError as error:
                raise AgentError(str(error), code=EXIT_CONFIG) from error
            async with asyncio.TaskGroup() as tasks:
                sync = tasks.create_task(syncing, name="status")
                record = tasks.create_task(self._recorder.run(), name="events")
                if self._history.writer is not None:
                    # Cancelled last: it records what the other services do while they stop.
                    tasks.create_task(self._history.writer.run(), name="history")
                if self._history.downtime is not None:
                    tasks.create_task(self._history.downtime.run(), name="absence")
                try:
                    await self._serve(lambda: on_serving(addresses))
                except asyncio.CancelledError:
                    # Drain statuses and events concurrently; in sequence they would take too long.
                    self._pods.status_manager.stop(drain=_DRAIN_SECONDS)
                    record.cancel()
                    await self._recorder.drain(_DRAIN_SECONDS)
                    await sync
                    raise

    def has_running_containers(self) -> bool:
        """True if a container ran at the last relist."""
        return any(
            container.state is ContainerRunState.RUNNING
            for pod in self._pleg.pods().values()
            for container in pod.facts.containers
        )

    async def drain(self, report: Callable[[str], None]) -> tuple[str, ...]:
        """Terminate all pods by priority and report the progress.

        Returns the pods that did not terminate in time.
        """
        return await drain_node(self._shutdown, report, self._node.is_reported_not_ready)

    async def _serve(self, on_serving: Callable[[], None]) -> None:
        """Run all services but those that send statuses and events, which outlive a stop."""
        self._report_restart()
        self._report_history_problem()
        await self._pleg.relist_once()
        await self._node.collect_once()
        async with asyncio.TaskGroup() as tasks:
            for service in (
                self._pleg,
                self.status_view.updater,
                self._pods.workers,
                self._pods.housekeeping,
                self._shutdown,
                self._pods.resize_controller,
                self._node.usage,
                self._node.reflector,
                *self._sources.build(),
            ):
                tasks.create_task(service.run(), name=type(service).__name__)
            for restartable in (
                self._sources.mirror_controller,
                self._node.status,
                self._node.lease,
                self._taints,
            ):
                name, run = type(restartable).__name__, restartable.run
                tasks.create_task(run_with_restarts(name, run, self._clock), name=name)
            if isinstance(self._runtime, ProcessRuntime):
                refresher = self._build_refresher(self._runtime)
                tasks.create_task(refresher.run(), name="volumes")
            if self._alerts is not None:
                tasks.create_task(self._alerts.service.run(), name="alerts")
            if isinstance(self._runtime, ReportsProbes):
                tasks.create_task(self._follow_probes(self._runtime), name="probes")
            else:
                tasks.create_task(self._pods.probes.run(), name="probes")
            if self._settings.samples and self._settings.embedded:
                tasks.create_task(create_sample_pods(self._pod_client), name="samples")
            on_serving()

    def _build_refresher(self, runtime: ProcessRuntime) -> Refresher:
        return Refresher(
            runtime,
            self._pods.pod_manager.pods,
            clock=self._clock,
            heartbeat=self._heartbeats.register("volumes", max_silent_seconds=300),
        )

    async def _start_health_listener(self, stack: AsyncExitStack) -> str:
        """Start the /healthz server; return its URL, empty if it is disabled."""
        host, port = self._settings.healthz_bind_address, self._settings.healthz_port
        if port is None:
            return ""
        listener = HealthListener(host, port, self._checks)
        try:
            port = await listener.start()
        except OSError as error:
            reason = (os.strerror(error.errno) if error.errno else str(error)).lower()
            raise AgentError(
                f"cannot listen on {host} port {port}: {reason}; stop the process that uses it, "
                "or pass another --healthz-port (0 disables it)"
            ) from error
        stack.push_async_callback(listener.stop)
        return health_url(host, port)

    def _server_port(self) -> int:
        return 0 if self._server is None else self._server.port

    def _checks(self) -> dict[str, HealthCheck]:
        checks = heartbeat_checks(self._heartbeats)
        if self._settings.history:
            checks["history"] = self._history.health
        return checks | {"syncloop": checks["housekeeping"], "runtime": self._pleg.unhealthy_reason}

    def _wake_pod(self, uid: PodUID) -> None:
        self._pods.wake(uid)

    def _update_snapshot(self, uid: PodUID) -> None:
        self.status_view.updater.pod_changed(uid)

    def _alert_conditions(self) -> tuple[AlertCondition, ...] | None:
        """Node conditions of firing alerts; None before the alert services are built."""
        if self._alerts is not None:
            return self._alerts.node_conditions()
        return () if self._context.alert_rules is None else None

    def _desired_taints(self) -> tuple[Taint, ...]:
        """Taints of firing alerts; none if alerts are disabled."""
        return () if self._alerts is None else self._alerts.desired_taints()

    def _reconcile(self) -> None:
        self._pods.status_manager.reconcile()

    def _wake_mirror_controller(self) -> None:
        self._sources.mirror_controller.wake()

    def _report_restart(self) -> None:
        if self._context.restart_reason:
            reason = self._context.restart_reason
            self._node.events.warn(reasons.AGENT_RESTARTED, f"The agent was restarted: {reason}")

    def _report_history_problem(self) -> None:
        if self._history.problem:
            self._node.events.warn(reasons.HISTORY_NOT_KEPT, self._history.problem)
        if self._history.writer is not None:
            self._history.writer.on_loss = self._report_lost_history

    def _report_lost_history(self, reason: str) -> None:
        self._node.events.warn(reasons.HISTORY_LOST, f"{reason}; started a new history")

    async def _follow_probes(self, runtime: ReportsProbes) -> None:
        """Record the probe results of the runtime; retry after any failure."""
        while True:
            try:
                async for result in runtime.probe_results():
                    self._pods.probe_results.record(result)
            except Exception:
                logger.exception("stream of probe results failed, will retry")
            await self._clock.wait(_PROBE_RETRY_SECONDS)


def build_node_agent(context: AgentContext) -> NodeAgent:
    """Build the agent without starting it. Raises AgentError."""
    return NodeAgent(context)


def health_url(host: str, port: int) -> str:
    """Return the URL of the health server."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _rate_limit(settings: AgentSettings) -> RateLimiter | None:
    if not settings.kube_api_qps:
        return None
    return RateLimiter(settings.kube_api_qps, settings.kube_api_burst)


def _user_agent(part: str) -> str:
    return f"podstatus/{part}"
