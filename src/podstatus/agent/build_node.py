"""Put a node together, and run it."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from podstatus.agent.build_runtime import Around, build_process_runtime
from podstatus.agent.find_runtime import find_runtime
from podstatus.agent.node_pods import AgentPods
from podstatus.agent.node_side import NodeSide
from podstatus.agent.pod_side import Beside, PodSide
from podstatus.agent.run import MISTAKE, CannotRunError, Listening, Surroundings
from podstatus.agent.samples import create_samples
from podstatus.agent.serve_node import NodePort
from podstatus.agent.serving_certificate import CannotServeNodeError
from podstatus.agent.setting_kinds import PROCESS
from podstatus.agent.settings import AgentSettings
from podstatus.base.clock import Clock
from podstatus.base.heartbeat import Heartbeats
from podstatus.base.loop import SystemClock
from podstatus.checkpoint.errors import CheckpointError
from podstatus.checkpoint.files import FileState
from podstatus.checkpoint.outbox import FileOutbox
from podstatus.client import ApiClient, HttpPodApi, Timing, TokenBucket
from podstatus.client.event_sink import HttpEventSink
from podstatus.events import reasons
from podstatus.events.about import about_pod
from podstatus.events.policy import EventPolicy
from podstatus.events.recorder import Recorder
from podstatus.kube.pod import Pod, PodUID, is_static_pod
from podstatus.runtime.port import Runtime, SelfProbing
from podstatus.runtime.process.adapter import ProcessRuntime
from podstatus.runtime.process.refresh import Refresher
from podstatus.runtime.relist import RuntimeView
from podstatus.sources.api import SOURCE as API
from podstatus.sources.api import ApiSource
from podstatus.sources.folder import SOURCE as FILE
from podstatus.sources.folder import FolderSource
from podstatus.sources.manifest import ManifestProblem
from podstatus.sources.mirrors import MirrorPods
from podstatus.sources.url import SOURCE as HTTP
from podstatus.sources.url import UrlSource
from podstatus.status.ports import Undelivered
from podstatus.web.answers import Sources
from podstatus.web.health import Check, HealthListener, heartbeat_checks

logger = logging.getLogger(__name__)

_DRAIN_SECONDS = 2.0
"""For statuses and events when the agent ends. Then our own API server has 1.5 to end, and whoever
stops us waits 5."""
_PROBES_SECONDS = 1.0
"""After which a runtime is asked again that could not say what its probes find."""
_LEASE_TIMING = Timing(total_seconds=10.0)


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
        self._clock = clock = clock or SystemClock()
        self._heartbeats = heartbeats or Heartbeats(clock)
        # Lease and node status never wait behind pod status or events.
        access = surroundings.access
        self._pod_client = ApiClient(access, user_agent=_agent("status"), limit=_limit(settings))
        self._node_client = ApiClient(access, timing=_LEASE_TIMING, user_agent=_agent("node"))
        self._event_client = ApiClient(access, user_agent=_agent("events"))
        self._recorder = Recorder(
            HttpEventSink(self._event_client),
            host=settings.node_name,
            clock=clock,
            policy=EventPolicy(qps=settings.event_qps, burst=settings.event_burst),
            beat=self._heartbeats.expect("events", at_most=300),
        )
        self._runtime = runtime or self._find_runtime(surroundings.root.folder("runtime"))
        self._view = RuntimeView(
            self._runtime,
            clock=clock,
            on_change=self._wake_pod,
            beat=self._heartbeats.expect("relist", at_most=180),
        )
        self._node = NodeSide(
            settings,
            self._node_client,
            self._runtime,
            self._recorder,
            runtime_problem=self._view.problem,
            on_recovered=self._reconcile,
            heartbeats=self._heartbeats,
            clock=clock,
            port=self._port_number,
        )
        self._pods = PodSide(
            Beside(
                settings=settings,
                clock=clock,
                heartbeats=self._heartbeats,
                recorder=self._recorder,
                own_node=self._node.own.current,
                host_ips=self._node.host_ips,
                sources=self._source_names(),
                on_mirror=self._wake_mirrors,
            ),
            self._runtime,
            self._view,
            HttpPodApi(self._pod_client),
            FileState(surroundings.root.folder("checkpoints")),
            FileOutbox(surroundings.root.folder("outbox"), Undelivered),
        )
        if surroundings.port is not None:
            sources = Sources(
                pods=AgentPods(self._pods.directory, self._pods.statuses, self._view),
                runtime=self._runtime,
                checks=self._checks,
                logs=surroundings.root.folder("logs"),
            )
            self._port = NodePort(settings, surroundings.port, sources, self._event_client, clock)
        self._mirrors = MirrorPods(
            self._pod_client,
            settings.node_name,
            static_pods=self._static_pods,
            mirror_pods=self._pods.directory.mirror_pods,
            may_remove=self._may_remove_mirror,
            node_uid=lambda: self._node.own.uid or None,
            clock=clock,
            on_problem=self._mirror_problem,
            beat=self._heartbeats.expect("mirrors", at_most=120),
        )

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
            for client in (self._pod_client, self._node_client, self._event_client):
                await stack.enter_async_context(client)
            where = Listening(health=await self._listen(stack), agent=await self._open_port(stack))
            try:
                syncing = self._pods.statuses.run()
            except CheckpointError as error:
                raise CannotRunError(str(error), code=MISTAKE) from error
            async with asyncio.TaskGroup() as tasks:
                sync = tasks.create_task(syncing, name="status")
                record = tasks.create_task(self._recorder.run(), name="events")
                try:
                    await self._serve(lambda: serving(where))
                except asyncio.CancelledError:
                    # Side by side: together they would take too long.
                    self._pods.statuses.stop(drain=_DRAIN_SECONDS)
                    record.cancel()
                    await self._recorder.drain(_DRAIN_SECONDS)
                    await sync
                    raise

    async def _serve(self, serving: Callable[[], None]) -> None:
        """Run all services; who stops them stops all but those that still have to send."""
        self._tell_restart()
        await self._view.relist_once()
        await self._node.look_once()
        async with asyncio.TaskGroup() as tasks:
            for service in (
                self._view,
                self._pods.workers,
                self._pods.housekeeping,
                self._mirrors,
                self._node.usage,
                self._node.status,
                self._node.lease,
                self._node.reflector,
                *self._sources(),
            ):
                tasks.create_task(service.run(), name=type(service).__name__)
            if isinstance(self._runtime, ProcessRuntime):
                refresher = self._refresher(self._runtime)
                tasks.create_task(refresher.run(), name="volumes")
            if isinstance(self._runtime, SelfProbing):
                tasks.create_task(self._follow_probes(self._runtime), name="probes")
            if self._settings.samples and self._settings.embedded:
                tasks.create_task(create_samples(self._pod_client), name="samples")
            serving()

    def _refresher(self, runtime: ProcessRuntime) -> Refresher:
        return Refresher(
            runtime,
            self._pods.directory.pods,
            clock=self._clock,
            beat=self._heartbeats.expect("volumes", at_most=300),
        )

    def _source_names(self) -> frozenset[str]:
        told = {
            API: True,
            FILE: self._settings.pod_manifest_path is not None,
            HTTP: self._settings.manifest_url is not None,
        }
        return frozenset(name for name, is_there in told.items() if is_there)

    def _sources(self) -> list[ApiSource | FolderSource | UrlSource]:
        settings, mux, beats = self._settings, self._pods.mux, self._heartbeats
        sources: list[ApiSource | FolderSource | UrlSource] = [
            ApiSource(
                self._pod_client,
                settings.node_name,
                mux,
                clock=self._clock,
                beat=beats.expect("source-api", at_most=300),
            )
        ]
        if settings.pod_manifest_path is not None:
            sources.append(
                FolderSource(
                    settings.pod_manifest_path,
                    settings.node_name,
                    lambda pods: mux.deliver(FILE, pods),
                    clock=self._clock,
                    period=settings.file_check_frequency,
                    on_problem=self._manifest_problem,
                    beat=beats.expect("source-file", at_most=120),
                )
            )
        if settings.manifest_url is not None:
            sources.append(
                UrlSource(
                    settings.manifest_url,
                    settings.node_name,
                    lambda pods: mux.deliver(HTTP, pods),
                    headers=settings.manifest_url_header,
                    clock=self._clock,
                    period=settings.http_check_frequency,
                    on_problem=self._manifest_problem,
                    beat=beats.expect("source-http", at_most=120),
                )
            )
        return sources

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

    async def _open_port(self, stack: AsyncExitStack) -> str:
        """Open the HTTPS port; where."""
        if self._port is None:
            return ""
        try:
            await self._port.start()
        except CannotServeNodeError as error:
            raise CannotRunError(str(error)) from error
        stack.push_async_callback(self._port.stop)
        return self._port.url

    def _port_number(self) -> int:
        return 0 if self._port is None else self._port.port

    def _checks(self) -> dict[str, Check]:
        checks = heartbeat_checks(self._heartbeats)
        return checks | {"syncloop": checks["housekeeping"], "runtime": self._view.problem}

    def _wake_pod(self, uid: PodUID) -> None:
        self._pods.wake(uid)

    def _reconcile(self) -> None:
        self._pods.statuses.reconcile()

    def _wake_mirrors(self) -> None:
        self._mirrors.wake()

    def _tell_restart(self) -> None:
        if self._surroundings.restarted:
            why = self._surroundings.restarted
            self._node.events.warn(
                reasons.AGENT_RESTARTED, f"The agent ended and was started again: {why}"
            )

    async def _follow_probes(self, runtime: SelfProbing) -> None:
        """Take what probes find; no failure of a runtime ends this."""
        while True:
            try:
                async for result in runtime.probe_results():
                    self._pods.book.take(result)
            except Exception:
                logger.exception("results of probes broke off, will ask again")
            await self._clock.wait(_PROBES_SECONDS)

    def _static_pods(self) -> list[Pod]:
        return [pod for pod in self._pods.directory.pods() if is_static_pod(pod)]

    def _may_remove_mirror(self, full_name: tuple[str, str]) -> bool:
        """Whether all is over with the static pod of this name."""
        return self._pods.mux.all_delivered and not self._pods.lives.has_unfinished(full_name)

    def _manifest_problem(self, problem: ManifestProblem) -> None:
        self._node.events.warn(
            reasons.INVALID_MANIFEST, f"Cannot read the static pods in {problem}"
        )

    def _mirror_problem(self, pod: Pod, problem: str) -> None:
        self._recorder.warn(about_pod(pod), reasons.FAILED_CREATE_MIRROR_POD, problem)


def build_node(surroundings: Surroundings) -> NodeAgent:
    """The node, not started yet. Raises CannotRunError."""
    return NodeAgent(surroundings)


def health_url(host: str, port: int) -> str:
    """Where whoever wants to know about our health asks."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _limit(settings: AgentSettings) -> TokenBucket | None:
    if not settings.kube_api_qps:
        return None
    return TokenBucket(settings.kube_api_qps, settings.kube_api_burst)


def _agent(part: str) -> str:
    return f"podstatus/{part}"
