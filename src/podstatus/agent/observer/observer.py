"""Build the observer of a cluster, and run it."""

import asyncio
import ctypes
import gc
import logging
import platform
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, suppress

from podstatus import __version__
from podstatus.agent.compose.history import HistoryFile
from podstatus.agent.compose.kubelet_server import NodePort
from podstatus.agent.compose.open_port import open_port
from podstatus.agent.daemon.root_dir import RootDirError
from podstatus.agent.daemon.run import MISTAKE, CannotRunError, Listening, Surroundings
from podstatus.agent.observer.cluster_view import ClusterView, Observed
from podstatus.agent.observer.history_scope import begun_after
from podstatus.agent.observer.settings import OBSERVE_SETTINGS
from podstatus.agent.observer.status_view import ClusterObservatory
from podstatus.agent.settings.export import flags
from podstatus.base.aio import SystemClock, boottime_ns
from podstatus.base.clock import Clock
from podstatus.base.heartbeat import Heartbeats
from podstatus.client import ApiClient
from podstatus.client.rest.server_health import ServerHealth
from podstatus.kube.errors import ApiError, BusyError, DeniedError, UnavailableError
from podstatus.node.machine.system_info import kubelet_version
from podstatus.observe.history.store import History, HistoryError, KnownPod
from podstatus.observe.history.writer import Scribe
from podstatus.observe.metrics.model import Later, Told
from podstatus.observe.metrics.pages import MetricPages
from podstatus.observe.metrics.podstatus_collector import (
    own_metrics,
    process_metrics,
    service_metrics,
)
from podstatus.observe.metrics.sli_collector import HealthMetrics
from podstatus.observe.snapshot_cache import Board
from podstatus.observe.summary.pod import PodSummary
from podstatus.observe.transitions.tracker import SUMMARIES, LastSeen
from podstatus.web.handlers import HandlerDependencies
from podstatus.web.kubelet.health import HealthCheck, healthy, heartbeat_checks
from podstatus.web.ports import AgentDescription
from podstatus.web.routes import OBSERVER_ROUTES


def give_back_memory() -> None:
    """As far as this system can: the C library of Linux keeps what was freed for the next time."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


logger = logging.getLogger(__name__)

RBAC = "examples/observer-rbac.yaml"
_FIRST_SECONDS = 5.0
_FIRST_LIST_SECONDS = 30.0
"""A list of 5,000 pods takes two or three. Who asks before it is there is told how things are."""
_AGAIN_SECONDS = 1.0
_NOTED_SECONDS = 0.5
GAVE_BACK = "memory given back that the first list took"


class Observer:
    """Looks on: everything wired, and run together. It writes nothing to the cluster."""

    def __init__(
        self, surroundings: Surroundings, observed: Observed, clock: Clock | None = None
    ) -> None:
        settings, root = surroundings.settings, surroundings.root
        self._surroundings = surroundings
        self._observed = observed
        self._clock = clock = clock or SystemClock()
        self._heartbeats = Heartbeats(boottime_ns)
        self._away = ""
        """Why the API server did not answer."""
        contact = ServerHealth(clock)
        self._client = ApiClient(
            surroundings.access, user_agent="podstatus/observe", health=contact
        )
        self._history = HistoryFile(settings, root.path)
        self._scribe = None if self._history.file is None else self._make_scribe(self._history.file)
        self.view = ClusterView(self._client, observed, Board(), clock=clock, scribe=self._scribe)
        self.observatory = ClusterObservatory(self.view, contact=contact, history=self._history)
        self._pages = MetricPages({"": self._metrics, "slis": HealthMetrics(self._checks)})
        self._port: NodePort | None = None
        if surroundings.port is not None:
            sources = HandlerDependencies(
                checks=self._checks,
                routes=OBSERVER_ROUTES,
                logs=root.folder("logs"),
                view=self.observatory,
                agent_info=self._about(),
                metrics=self._pages,
            )
            # Who may ask about all nodes may ask here.
            self._port = NodePort(
                settings, surroundings.port, sources, self._client, clock, node_name=""
            )

    def _make_scribe(self, history: History) -> Scribe[PodSummary]:
        scribe = Scribe(
            history,
            LastSeen(SUMMARIES),
            clock=self._clock,
            retention=self._history.retention,
            beat=self._heartbeats.register("history", max_silent_seconds=120),
        )
        self._history.counted_by(lambda: scribe.counts)
        return scribe

    async def run(self, serving: Callable[[Listening], None]) -> None:
        """Look on until cancelled; say where it listens, once it does. Raises CannotRunError."""
        async with AsyncExitStack() as stack:
            stack.callback(self._history.close)
            stack.callback(self._pages.close)
            await stack.enter_async_context(self._client)
            is_there = await self._is_there()
            # Before the first list: whoever has the port already is known at once.
            url = await open_port(self._port, stack)
            noted = await self._noted_before()
            async with asyncio.TaskGroup() as tasks:
                if self._scribe is not None:
                    tasks.create_task(self._scribe.run(), name="history")
                tasks.create_task(self._follow(is_there=is_there, noted=noted), name="cluster")
                if is_there:
                    await self._first_list()
                serving(Listening(agent=url, observes=True))

    async def _first_list(self) -> None:
        """Wait for it: until then all that is answered is that nothing is known yet."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_LIST_SECONDS):
                await self.view.pods.wait_synced()

    async def _is_there(self) -> bool:
        """Whether the API server answers, and lets us look. Raises CannotRunError."""
        try:
            return await self._answers()
        except ApiError as error:
            denied = isinstance(error, DeniedError)
            hint = f"what an observer needs is in {RBAC}" if denied else "check what is selected"
            raise CannotRunError(f"cannot look at pods: {error}; {hint}", code=MISTAKE) from error

    async def _answers(self) -> bool:
        """Whether the API server answers. Raises ApiError if it refuses."""
        try:
            async with asyncio.timeout(_FIRST_SECONDS):
                await self.view.look_once()
        except (UnavailableError, BusyError, TimeoutError) as error:
            self._away = str(error) or f"no answer within {_FIRST_SECONDS:g} s"
            return False
        return True

    async def _follow(self, *, is_there: bool, noted: list[KnownPod]) -> None:
        if not is_there:
            await self._wait_for_server()
        async with asyncio.TaskGroup() as tasks:
            for reflector in self.view.services():
                tasks.create_task(reflector.run())
            await self.view.pods.wait_synced()
            self._tell_missing(noted)
            await self._first_notes()
            give_back_memory()
            logger.info("%s", GAVE_BACK)

    async def _first_notes(self) -> None:
        """Wait until all that the first list showed is noted."""
        while self._scribe is not None and self._scribe.counts.waiting:
            await self._clock.wait(_NOTED_SECONDS)

    async def _wait_for_server(self) -> None:
        logger.warning(
            "API server does not answer, will ask again until it does: error=%s", self._away
        )
        server = self._surroundings.access.server
        try:
            while not await self._answers():
                await self._clock.wait(_AGAIN_SECONDS)
        except ApiError as error:
            # One that has just started may not know yet who may what: who follows asks again.
            logger.warning("API server refuses, will ask again: server=%s error=%s", server, error)
        else:
            logger.info("API server answers: server=%s", server)

    async def _noted_before(self) -> list[KnownPod]:
        """The pods that were there when an observer of the same looked on last.

        Who is cancelled waits for the thread, since the history is closed then.
        """
        history = self._history.file
        if history is None:
            return []
        reading = asyncio.create_task(asyncio.to_thread(self._unfinished, history))
        try:
            return await asyncio.shield(reading)
        except asyncio.CancelledError:
            await asyncio.wait({reading})
            raise

    def _unfinished(self, history: History) -> list[KnownPod]:
        root, server = self._surroundings.root, self._surroundings.access.server
        try:
            after = begun_after(root, server, self._observed, newest=history.newest())
            return history.unfinished(after=after)
        except (RootDirError, HistoryError) as error:
            logger.warning("ends of pods that nobody saw are not noted: error=%s", error)
        return []

    def _tell_missing(self, noted: list[KnownPod]) -> None:
        """Those that are gone ended while nobody looked."""
        there = self.view.board.pods()
        for pod in noted:
            if pod.uid not in there and self._scribe is not None:
                self._scribe.gone(pod)

    def _checks(self) -> dict[str, HealthCheck]:
        checks = heartbeat_checks(self._heartbeats)
        if self._surroundings.settings.history:
            stalled = checks.get("history", healthy)
            checks["history"] = lambda: stalled() or self._history.health()
        return checks

    def _metrics(self) -> Iterator[Told | Later]:
        yield from own_metrics(self.observatory, self._clock)
        yield from service_metrics(self._heartbeats)
        yield from process_metrics()

    def _about(self) -> AgentDescription:
        asked = self._observed
        chosen = {"namespace": asked.namespace, "selector": asked.selector, "node": asked.node}
        return AgentDescription(
            version=__version__,
            kubernetes=kubelet_version(__version__),
            python=platform.python_version(),
            started=self._clock.now(),
            configuration={},
            flags=flags(self._surroundings.settings, OBSERVE_SETTINGS) | chosen,
        )


def build_observer(surroundings: Surroundings, observed: Observed) -> Observer:
    """The observer, not started yet. Raises CannotRunError."""
    return Observer(surroundings, observed)
