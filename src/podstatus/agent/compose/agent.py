"""Put a node together, and run it."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from podstatus.agent.compose.alerts import AlertSide
from podstatus.agent.compose.history import KeptHistory
from podstatus.agent.compose.kubelet_server import AgentPods, NodePort
from podstatus.agent.compose.metrics import make_pages
from podstatus.agent.compose.node import NodeSide
from podstatus.agent.compose.open_port import open_port
from podstatus.agent.compose.pods import Beside, PodSide
from podstatus.agent.compose.runtime import Around, build_process_runtime, find_runtime
from podstatus.agent.compose.shutdown import NodeDrain, drain
from podstatus.agent.compose.sources import SourceSide, source_names
from podstatus.agent.compose.status_view import AgentObservatory
from podstatus.agent.daemon.run import MISTAKE, CannotRunError, Listening, Surroundings
from podstatus.agent.daemon.sample_pods import create_samples
from podstatus.agent.daemon.service_restart import keep_running
from podstatus.agent.settings.export import about_agent
from podstatus.agent.settings.model import AgentSettings
from podstatus.agent.settings.schema.scalars import PROCESS
from podstatus.alerts.actions.node_taints import AlertTaints
from podstatus.base.aio import SystemClock, boottime_ns
from podstatus.base.clock import Clock
from podstatus.base.heartbeat import Heartbeats
from podstatus.checkpoint.errors import CheckpointError
from podstatus.checkpoint.outbox import FileOutbox
from podstatus.checkpoint.state import FileState
from podstatus.client import ApiClient, HttpNodeApi, HttpPodApi, RateLimiter, Timeouts
from podstatus.client.rest.server_health import ServerHealth
from podstatus.client.typed.events import HttpEventSink
from podstatus.events import reasons
from podstatus.events.policy import EventPolicy
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
from podstatus.runtime.process.adapter import ProcessRuntime
from podstatus.runtime.process.refresher import Refresher
from podstatus.status.ports import OutboxEntry
from podstatus.web.handlers import HandlerDependencies
from podstatus.web.kubelet.health import HealthCheck, HealthListener, heartbeat_checks

logger = logging.getLogger(__name__)

_DRAIN_SECONDS = 2.0
"""For statuses and events when the agent ends. Then our own API server has 1.5 to end, and whoever
stops us waits 5."""
_PROBES_SECONDS = 1.0
"""After which a runtime is asked again that could not say what its probes find."""
_LEASE_TIMING = Timeouts(total_seconds=10.0)


class NodeAgent:
    """A node: everything wired, and run together."""

    def __init__(
        self,
        surroundings: Surroundings,
        runtime: Runtime | None = None,
        clock: Clock | None = None,
        heartbeats: Heartbeats | None = None,
    ) -> None:
        self._settings = settings = surroundings.settings
        self._surroundings = surroundings
        self._port: NodePort | None = None
        self._alerts: AlertSide | None = None
        self._clock = clock = clock or SystemClock()
        self._heartbeats = heartbeats or Heartbeats(boottime_ns)
        # Lease and node status never wait behind pod status or events.
        access, contact = surroundings.access, ServerHealth(clock)
        self._pod_client = ApiClient(
            access, user_agent=_agent("status"), limit=_limit(settings), health=contact
        )
        self._node_client = ApiClient(
            access, timeouts=_LEASE_TIMING, user_agent=_agent("node"), health=contact
        )
        self._event_client = ApiClient(access, user_agent=_agent("events"), health=contact)
        self._history = KeptHistory(settings, surroundings.root.path, clock)
        self._recorder = EventRecorder(
            HttpEventSink(self._event_client),
            host=settings.node_name,
            clock=clock,
            policy=EventPolicy(qps=settings.event_qps, burst=settings.event_burst),
            heartbeat=self._heartbeats.register("events", max_silent_seconds=300),
            on_recorded=self._history.event,
        )
        self._runtime = runtime or self._find_runtime(surroundings.root.folder("runtime"))
        work = WorkCounts()
        counted = instrument(self._runtime, work, clock)
        self._view = Pleg(
            counted,
            clock=clock,
            on_change=self._wake_pod,
            heartbeat=self._heartbeats.register("relist", max_silent_seconds=180),
            observer=work,
        )
        drains = NodeDrain()
        self._node = NodeSide(
            settings,
            self._node_client,
            counted,
            self._recorder,
            runtime_problem=self._view.unhealthy_reason,
            shutting_down=drains.problem,
            on_recovered=self._reconcile,
            heartbeats=self._heartbeats,
            clock=clock,
            port=self._port_number,
            stated=self._stated,
        )
        self._pods = PodSide(
            Beside(
                settings=settings,
                clock=clock,
                heartbeats=self._heartbeats,
                recorder=self._recorder,
                own_node=self._node.own.current,
                host_ips=self._node.host_ips,
                sources=source_names(settings),
                on_mirror=self._wake_mirrors,
                not_taken=drains.not_taken,
                history=self._history,
                on_directory=self._post_pod,
                work=work,
            ),
            counted,
            self._view,
            HttpPodApi(self._pod_client),
            FileState(surroundings.root.folder("checkpoints")),
            FileOutbox(surroundings.root.folder("outbox"), OutboxEntry),
        )
        if self._history.absence is not None:
            self._pods.statuses.add_notifier(self._history.absence)
        self.observatory = AgentObservatory(
            self._pods,
            self._node,
            self._view,
            contact=contact,
            history=self._history,
            clock=clock,
        )
        self._taints = AlertTaints(
            HttpNodeApi(self._node_client),
            self._node.own,
            self._node.events,
            desired=self._wanted_taints,
            clock=clock,
        )
        self._alerts = self._make_alerts(surroundings)
        alerts = None if self._alerts is None else self._alerts.watchman
        self._pages = make_pages(
            settings.node_name,
            work,
            self._pods,
            self._node,
            self._view,
            self._recorder,
            self.observatory,
            alerts=alerts,
            requests=contact.requests,
            watching=(watching := WatchCounts()),
            metered=isinstance(counted, ContainerStats),
            heartbeats=self._heartbeats,
            checks=self._checks,
            clock=clock,
        )
        self._shutdown = drains.wire(settings, self._pods, self._node, self._view, clock)
        if surroundings.port is not None:
            sources = HandlerDependencies(
                pods=AgentPods(self._pods.directory, self._pods.statuses, self._view),
                runtime=counted,
                checks=self._checks,
                drain=self._shutdown,
                logs=surroundings.root.folder("logs"),
                view=self.observatory,
                alerts=alerts,
                usage=self._node.usage,
                agent_info=about_agent(settings, clock.now()),
                metrics=self._pages,
                watch_counts=watching,
            )
            self._port = NodePort(settings, surroundings.port, sources, self._event_client, clock)
        self._sources = SourceSide(
            settings,
            surroundings.root,
            self._pod_client,
            self._pods,
            self._node,
            self._recorder,
            self._runtime,
            heartbeats=self._heartbeats,
            clock=clock,
        )

    def _make_alerts(self, surroundings: Surroundings) -> AlertSide | None:
        """What tells of alerts, if that is wanted."""
        if surroundings.rules is None:
            return None
        made = AlertSide(
            self._settings,
            surroundings.root.path,
            surroundings.rules,
            self.observatory,
            self._pods,
            self._node,
            self._taints,
            self._view,
            self._recorder,
            self._node_client,
            is_posted=lambda: self._pods.mux.all_sources_ready and self.observatory.poster.is_idle,
            url=lambda: "" if self._port is None else self._port.url,
            beat=self._heartbeats.register("alerts", max_silent_seconds=60, is_vital=False),
            clock=self._clock,
        )
        self._history.on_foreign = made.watchman.foreign_write
        return made

    def _find_runtime(self, folder: Path) -> Runtime:
        """The one that the settings name. Raises CannotRunError."""
        if self._settings.runtime != PROCESS:
            return find_runtime(self._settings.runtime, folder, self._clock)
        return build_process_runtime(
            Around(
                settings=self._settings,
                folder=folder,
                client=self._pod_client,
                recorder=self._recorder,
                host_ips=lambda: self._node.host_ips(),  # noqa: PLW0108 - it comes later
                allocatable=lambda: self._node.own.current().status.allocatable or {},
                clock=self._clock,
            )
        )

    async def run(self, serving: Callable[[Listening], None]) -> None:
        """Be a node until cancelled; say where it listens, once it does. Raises CannotRunError."""
        async with AsyncExitStack() as stack:
            if isinstance(self._runtime, ProcessRuntime):
                stack.callback(self._runtime.close)
            stack.callback(self._history.close)
            stack.callback(self._pages.close)
            if self._alerts is not None:
                stack.push_async_callback(self._alerts.close)
            for client in (self._pod_client, self._node_client, self._event_client):
                await stack.enter_async_context(client)
            await self._sources.meet_server()
            where = Listening(
                health=await self._listen(stack), agent=await open_port(self._port, stack)
            )
            try:
                syncing = self._pods.statuses.run()
            except CheckpointError as error:
                raise CannotRunError(str(error), code=MISTAKE) from error
            async with asyncio.TaskGroup() as tasks:
                sync = tasks.create_task(syncing, name="status")
                record = tasks.create_task(self._recorder.run(), name="events")
                if self._history.historian is not None:
                    # Cancelled last: it writes what the others still had to tell.
                    tasks.create_task(self._history.historian.run(), name="history")
                if self._history.absence is not None:
                    tasks.create_task(self._history.absence.run(), name="absence")
                try:
                    await self._serve(lambda: serving(where))
                except asyncio.CancelledError:
                    # Side by side: together they would take too long.
                    self._pods.statuses.stop(drain=_DRAIN_SECONDS)
                    record.cancel()
                    await self._recorder.drain(_DRAIN_SECONDS)
                    await sync
                    raise

    def has_running_containers(self) -> bool:
        """Whether something runs here, as far as is known: the runtime was listed a moment ago."""
        return any(
            container.state is ContainerRunState.RUNNING
            for pod in self._view.pods().values()
            for container in pod.facts.containers
        )

    async def drain(self, say: Callable[[str], None]) -> tuple[str, ...]:
        """End all pods by priority, and say what is waited for; those that did not end in time."""
        return await drain(self._shutdown, say, self._node.is_shown_not_ready)

    async def _serve(self, serving: Callable[[], None]) -> None:
        """Run all services; who stops them stops all but those that still have to send."""
        self._tell_restart()
        self._tell_no_history()
        await self._view.relist_once()
        await self._node.look_once()
        async with asyncio.TaskGroup() as tasks:
            for service in (
                self._view,
                self.observatory.poster,
                self._pods.workers,
                self._pods.housekeeping,
                self._shutdown,
                self._pods.resizes,
                self._node.usage,
                self._node.reflector,
                *self._sources.make(),
            ):
                tasks.create_task(service.run(), name=type(service).__name__)
            for kept in (self._sources.mirrors, self._node.status, self._node.lease, self._taints):
                name = type(kept).__name__
                tasks.create_task(keep_running(name, kept.run, self._clock), name=name)
            if isinstance(self._runtime, ProcessRuntime):
                refresher = self._refresher(self._runtime)
                tasks.create_task(refresher.run(), name="volumes")
            if self._alerts is not None:
                tasks.create_task(self._alerts.watchman.run(), name="alerts")
            if isinstance(self._runtime, ReportsProbes):
                tasks.create_task(self._follow_probes(self._runtime), name="probes")
            else:
                tasks.create_task(self._pods.probes.run(), name="probes")
            if self._settings.samples and self._settings.embedded:
                tasks.create_task(create_samples(self._pod_client), name="samples")
            serving()

    def _refresher(self, runtime: ProcessRuntime) -> Refresher:
        return Refresher(
            runtime,
            self._pods.directory.pods,
            clock=self._clock,
            heartbeat=self._heartbeats.register("volumes", max_silent_seconds=300),
        )

    async def _listen(self, stack: AsyncExitStack) -> str:
        """Answer questions about our health; where."""
        host, port = self._settings.healthz_bind_address, self._settings.healthz_port
        if port is None:
            return ""
        listener = HealthListener(host, port, self._checks)
        try:
            port = await listener.start()
        except OSError as error:
            raise CannotRunError(
                f"cannot listen on {host} port {port}: {(error.strerror or str(error)).lower()}; "
                "stop what uses it, or pass another --healthz-port (0 for none)"
            ) from error
        stack.push_async_callback(listener.stop)
        return health_url(host, port)

    def _port_number(self) -> int:
        return 0 if self._port is None else self._port.port

    def _checks(self) -> dict[str, HealthCheck]:
        checks = heartbeat_checks(self._heartbeats)
        if self._settings.history:
            checks["history"] = self._history.health
        return checks | {"syncloop": checks["housekeeping"], "runtime": self._view.unhealthy_reason}

    def _wake_pod(self, uid: PodUID) -> None:
        self._pods.wake(uid)

    def _post_pod(self, uid: PodUID) -> None:
        self.observatory.poster.changed(uid)

    def _stated(self) -> tuple[AlertCondition, ...] | None:
        """The conditions that our Node has because of alerts; None before that is known."""
        if self._alerts is not None:
            return self._alerts.stated()
        return () if self._surroundings.rules is None else None

    def _wanted_taints(self) -> tuple[Taint, ...]:
        """The taints that our Node is to have because of alerts; without rules there are none."""
        return () if self._alerts is None else self._alerts.wanted_taints()

    def _reconcile(self) -> None:
        self._pods.statuses.reconcile()

    def _wake_mirrors(self) -> None:
        self._sources.mirrors.wake()

    def _tell_restart(self) -> None:
        if self._surroundings.restarted:
            why = self._surroundings.restarted
            self._node.events.warn(
                reasons.AGENT_RESTARTED, f"The agent ended and was started again: {why}"
            )

    def _tell_no_history(self) -> None:
        if self._history.problem:
            self._node.events.warn(reasons.HISTORY_NOT_KEPT, self._history.problem)
        if self._history.historian is not None:
            self._history.historian.on_lost = self._report_lost_history

    def _report_lost_history(self, happened: str) -> None:
        self._node.events.warn(reasons.HISTORY_LOST, f"{happened}; a new one begins")

    async def _follow_probes(self, runtime: ReportsProbes) -> None:
        """Take what probes find; no failure of a runtime ends this."""
        while True:
            try:
                async for result in runtime.probe_results():
                    self._pods.book.record(result)
            except Exception:
                logger.exception("results of probes broke off, will ask again")
            await self._clock.wait(_PROBES_SECONDS)


def build_node(surroundings: Surroundings) -> NodeAgent:
    """The node, not started yet. Raises CannotRunError."""
    return NodeAgent(surroundings)


def health_url(host: str, port: int) -> str:
    """Where whoever wants to know about our health asks."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _limit(settings: AgentSettings) -> RateLimiter | None:
    if not settings.kube_api_qps:
        return None
    return RateLimiter(settings.kube_api_qps, settings.kube_api_burst)


def _agent(part: str) -> str:
    return f"podstatus/{part}"
