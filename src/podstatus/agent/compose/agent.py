"""Build the services of a node and run them."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from random import random

from podstatus.agent.compose.alerts import AlertServices, FiringAlerts
from podstatus.agent.compose.build_dependencies import RELIST, BuildRuntime, build_dependencies
from podstatus.agent.compose.drain import drain_node
from podstatus.agent.compose.kubelet_server import AgentPods, KubeletServer
from podstatus.agent.compose.metric_pages import build_metric_pages
from podstatus.agent.compose.node_services import AgentNodeServices, build_usage
from podstatus.agent.compose.pod_services import PodServices
from podstatus.agent.compose.pod_sources import SourceServices, source_names
from podstatus.agent.compose.runtime import build_runtime, open_process_runtime
from podstatus.agent.compose.status_view import NodeStatusView
from podstatus.agent.daemon.run_agent import AgentContext, ListenAddresses
from podstatus.agent.daemon.sample_pods import create_sample_pods
from podstatus.agent.errors import EXIT_CONFIG, AgentError
from podstatus.agent.settings.export import about_agent
from podstatus.alerts.actions.node_taints import AlertTaints
from podstatus.alerts.ports import AlertReader
from podstatus.base.backoff import Backoff
from podstatus.base.clock import Clock
from podstatus.base.service_heartbeats import Heartbeats
from podstatus.base.system_clock import SystemClock
from podstatus.checkpoint.errors import CheckpointError
from podstatus.client import HttpNodeApi
from podstatus.client.kubeconfig.server_url import host_and_port
from podstatus.events import reasons
from podstatus.kube.objects.runtime_facts import ContainerRunState
from podstatus.node.decide.readings import MachineReading
from podstatus.observe.history.node_recorder import NodeRecorder
from podstatus.observe.history.status_listener import StatusHistoryWriter
from podstatus.observe.metrics.watch_counters import WatchCounts
from podstatus.runtime.cri.cri_runtime import CriRuntime
from podstatus.runtime.port import ReportsProbes
from podstatus.runtime.process.process_runtime import ProcessRuntime
from podstatus.runtime.process.volume_refresher import Refresher
from podstatus.web.handlers import HandlerDependencies
from podstatus.web.kubelet.health import HealthCheck, HealthListener, heartbeat_checks

logger = logging.getLogger(__name__)

DRAIN_SECONDS = 2.0
"""Time to send pending statuses and events at a stop. The embedded API server then has 1.5 s to
stop, and the whole agent has 5 s."""
_KEEP_RUNNING = (
    "Its containers keep running, and nothing is reported about them until it is started again."
)
_NONE_RUNNING = "No containers are running."
_PROBE_RETRY_SECONDS = 1.0
"""Delay before reading probe results again after the runtime's stream of them failed."""
_RESTART_RESET_SECONDS = 300.0
"""Reset the back-off of a failing service after this much uptime."""


class NodeAgent:
    """The node agent: all services of a node, connected."""

    def __init__(
        self,
        context: AgentContext,
        clock: Clock,
        heartbeats: Heartbeats,
        build_runtime: BuildRuntime,
    ) -> None:
        self._context = context
        self._settings = settings = context.settings
        self._shared = shared = build_dependencies(context, clock, heartbeats, build_runtime)
        server = self._server = KubeletServer(
            settings,
            context.server_files,
            shared.clients.events,
            clock,
            node_name=settings.node_name,
        )
        firing = FiringAlerts(settings, context.alert_rules, clock)
        usage = build_usage(shared, on_reading=self._observe_reading)
        self._pods = PodServices(shared, source_names(settings), usage)
        self._node = AgentNodeServices(
            shared,
            usage,
            pressures=lambda: self._pods.eviction.node_conditions,
            shutting_down=self._pods.shutdown.problem,
            on_recovered=self._pods.status_manager.reconcile,
            port=lambda: server.port,
            alert_conditions=firing.node_conditions,
        )
        self.status_view = NodeStatusView(shared, self._pods, self._node)
        self._taints = AlertTaints(
            HttpNodeApi(shared.clients.node),
            shared.node_cache,
            shared.node_events,
            desired=firing.desired_taints,
            clock=clock,
        )
        self._alerts = (
            None
            if context.alert_rules is None
            else AlertServices(
                shared,
                context.alert_rules,
                firing,
                self.status_view,
                self._pods,
                self._node,
                self._taints,
                url=lambda: server.url,
            )
        )
        alerts = self.alerts
        watch_counts = WatchCounts()
        self._metric_pages = build_metric_pages(
            shared,
            self._pods,
            self._node,
            self.status_view,
            alerts=alerts,
            watch_counts=watch_counts,
            checks=self.checks,
        )
        self._handler_dependencies = HandlerDependencies(
            pods=AgentPods(
                self._pods.pod_manager,
                self._pods.status_manager,
                self._pods.held_back_phases,
                shared.pleg,
            ),
            runtime=shared.counted_runtime,
            checks=self.checks,
            drain=self._pods.shutdown,
            logs=context.root.folder("logs"),
            view=self.status_view,
            alerts=alerts,
            usage=self._node.usage,
            agent_info=about_agent(settings, clock.now()),
            metrics=self._metric_pages,
            watch_counts=watch_counts,
        )
        self._sources = SourceServices(shared, self._pods)

    def _observe_reading(self, machine: MachineReading) -> bool:
        return self._pods.eviction.observe(machine)

    async def run(self, on_serving: Callable[[ListenAddresses], None]) -> None:
        """Run until cancelled; call `on_serving` once all servers listen. Raises AgentError."""
        async with AsyncExitStack() as stack:
            shared, history = self._shared, self._shared.history
            if isinstance(shared.runtime, ProcessRuntime):
                stack.callback(shared.runtime.close)
                await open_process_runtime(shared.runtime)
            if isinstance(shared.runtime, CriRuntime):
                stack.push_async_callback(shared.runtime.close)
            stack.callback(history.close)
            stack.callback(self._metric_pages.close)
            if self._alerts is not None:
                stack.push_async_callback(self._alerts.close)
            for client in (shared.clients.pods, shared.clients.node, shared.clients.events):
                await stack.enter_async_context(client)
            await self._sources.check_server()
            addresses = ListenAddresses(
                health=await self._start_health_listener(stack),
                agent=await self._server.start(self._handler_dependencies),
            )
            stack.push_async_callback(self._server.stop)
            try:
                syncing = self._pods.status_manager.run()
            except CheckpointError as error:
                raise AgentError(str(error), code=EXIT_CONFIG) from error
            async with asyncio.TaskGroup() as tasks:
                sync = tasks.create_task(syncing, name="status")
                record = tasks.create_task(shared.recorder.run(), name="events")
                if history.writer is not None:
                    # Cancelled last: it records what the other services do while they stop.
                    tasks.create_task(history.writer.run(), name="history")
                if history.downtime is not None:
                    tasks.create_task(history.downtime.run(), name="absence")
                try:
                    await self._serve(lambda: on_serving(addresses))
                except asyncio.CancelledError:
                    history.record_stop()
                    # Drain statuses and events concurrently; in sequence they would take too long.
                    self._pods.status_manager.stop(drain=DRAIN_SECONDS)
                    record.cancel()
                    await asyncio.gather(self._report_stop(), shared.recorder.drain(DRAIN_SECONDS))
                    await sync
                    raise

    def has_running_containers(self) -> bool:
        """True if a container ran at the last relist."""
        return any(
            container.state is ContainerRunState.RUNNING
            for pod in self._shared.pleg.pods().values()
            for container in pod.facts.containers
        )

    def not_ready_reason(self) -> str:
        """Empty once the Node is registered."""
        return "" if self._node.is_registered() else "the Node is not registered yet"

    def stalled_services(self) -> tuple[str, ...]:
        """Vital services without a heartbeat; none while the runtime does not answer.

        Services wait for the runtime, and the next agent would wait for it, too.
        """
        heartbeats = self._shared.heartbeats
        if heartbeats.find_stalled(RELIST) is not None:
            return ()
        return tuple(str(it) for it in heartbeats.stalled() if it.is_vital)

    async def drain(self, report: Callable[[str], None]) -> tuple[str, ...]:
        """Terminate all pods by priority and report the progress.

        Returns the pods that did not terminate in time.
        """
        return await drain_node(self._pods.shutdown, report, self._node.is_reported_not_ready)

    async def _report_stop(self) -> None:
        """Tell the API server why the node will be silent, unless the server stops, too."""
        if self._settings.embedded:
            return
        state = _KEEP_RUNNING if self.has_running_containers() else _NONE_RUNNING
        message = f"The agent was stopped on request. {state}"
        self._shared.node_events.normal(reasons.AGENT_STOPPED, message)
        await self._node.status.report_stop(message)

    async def _serve(self, on_serving: Callable[[], None]) -> None:
        """Run all services but those that send statuses and events, which outlive a stop."""
        shared = self._shared
        self._report_restart()
        self._report_history_problem()
        await shared.pleg.relist_once()
        await self._node.collect_once()
        async with asyncio.TaskGroup() as tasks:
            for service in (
                shared.pleg,
                self._pods.snapshot_updater,
                self._pods.workers,
                self._pods.housekeeping,
                self._pods.removed_pods,
                self._pods.shutdown,
                self._pods.resize_controller,
                self._pods.eviction,
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
                tasks.create_task(run_with_restarts(name, run, shared.clock), name=name)
            if isinstance(shared.runtime, ProcessRuntime | CriRuntime):
                tasks.create_task(shared.services.run(), name="services")
                refresher = self._build_refresher(shared.runtime)
                tasks.create_task(refresher.run(), name="volumes")
            if self._alerts is not None:
                tasks.create_task(self._alerts.service.run(), name="alerts")
            if isinstance(shared.runtime, ReportsProbes):
                tasks.create_task(self._follow_probes(shared.runtime), name="probes")
            else:
                tasks.create_task(self._pods.probes.run(), name="probes")
            if shared.history.writer is not None:
                recorder = self._build_node_recorder(shared.history.writer)
                tasks.create_task(recorder.run(), name="node-history")
            if self._settings.samples and self._settings.embedded:
                tasks.create_task(create_sample_pods(shared.clients.pods), name="samples")
            on_serving()

    def _build_node_recorder(self, writer: StatusHistoryWriter) -> NodeRecorder:
        cache = self._shared.node_cache
        return NodeRecorder(
            # Not the draft: its conditions are not what the API server has.
            lambda: {} if cache.server_copy is None else self.status_view.nodes(),
            writer,
            version=lambda: cache.server_copy,
            clock=self._shared.clock,
        )

    def _build_refresher(self, runtime: ProcessRuntime | CriRuntime) -> Refresher:
        return Refresher(
            runtime.refresh_pod,
            self._pods.pod_manager.pods,
            clock=self._shared.clock,
            heartbeat=self._shared.heartbeats.register("volumes", max_silent_seconds=300),
        )

    async def _start_health_listener(self, stack: AsyncExitStack) -> str:
        """Start the /healthz server; return its URL, empty if it is disabled."""
        host, port = self._settings.healthz_bind_address, self._settings.healthz_port
        if port is None:
            return ""
        listener = HealthListener(host, port, self.checks)
        try:
            port = await listener.start()
        except OSError as error:
            reason = (os.strerror(error.errno) if error.errno else str(error)).lower()
            raise AgentError(
                f"cannot listen on {host} port {port}: {reason}; stop the process that uses it, "
                "or pass another --healthz-port (0 disables it)"
            ) from error
        stack.push_async_callback(listener.stop)
        return f"http://{host_and_port(host, str(port))}"

    @property
    def alerts(self) -> AlertReader | None:
        """The alerts of the node; None if alerts are disabled."""
        return None if self._alerts is None else self._alerts.service

    def checks(self) -> dict[str, HealthCheck]:
        """Return the health checks by name."""
        checks = heartbeat_checks(self._shared.heartbeats)
        if self._settings.history:
            checks["history"] = self._shared.history.health
        pleg = self._shared.pleg
        return checks | {"syncloop": checks["housekeeping"], "runtime": pleg.unhealthy_reason}

    def _report_restart(self) -> None:
        if reason := self._context.restart_reason:
            message = f"The agent was restarted: {reason}"
            self._shared.node_events.warn(reasons.AGENT_RESTARTED, message)

    def _report_history_problem(self) -> None:
        if problem := self._shared.history.problem:
            self._shared.node_events.warn(reasons.HISTORY_NOT_KEPT, problem)

    async def _follow_probes(self, runtime: ReportsProbes) -> None:
        """Record the probe results of the runtime; retry after any failure."""
        while True:
            try:
                async for result in runtime.probe_results():
                    self._pods.probe_results.record(result)
            except Exception:
                logger.exception("stream of probe results failed, will retry")
            await self._shared.clock.wait(_PROBE_RETRY_SECONDS)


async def run_with_restarts(
    name: str,
    run: Callable[[], Awaitable[None]],
    clock: Clock,
    *,
    random: Callable[[], float] = random,
) -> None:
    """Run a service until cancelled or until it returns; restart it with back-off on an error.

    For services that talk to the API server: its errors are handled where responses are decoded,
    so any other exception is a bug. It is logged with its traceback and must not end the process
    that looks after the containers: a node without a lease is better than no node.

    `run` must be restartable: it keeps no state between calls, or state that any number of
    aborted calls leaves valid.
    """
    backoff = Backoff(initial_seconds=1.0, max_seconds=60.0)
    while True:
        began = clock.monotonic()
        try:
            return await run()
        except Exception:
            uptime = (clock.monotonic() - began) / 1e9
            backoff = backoff.failed_after(uptime, reset_after=_RESTART_RESET_SECONDS)
            seconds = backoff.delay(random())
            logger.exception("service failed, restarting it: service=%s wait=%.1fs", name, seconds)
        await clock.wait(seconds)


def build_node_agent(context: AgentContext) -> NodeAgent:
    """Build the agent without starting it. Raises AgentError."""
    clock = SystemClock()
    return NodeAgent(context, clock, Heartbeats(clock), build_runtime)
