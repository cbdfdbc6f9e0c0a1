"""Run an agent: its folder, an API server to talk to, the node itself, until a signal.

CannotRunError     it cannot start, or not go on; the message says why and what to do
"""

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from podstatus.agent.compose.alert_rules import AlertRules, AlertRulesError, load_alert_rules
from podstatus.agent.compose.kubelet_server import PortFiles, find_certificate, find_port_files
from podstatus.agent.compose.serving_certificate import CannotServeNodeError
from podstatus.agent.compose.shutdown import Draining, Say, drain_at_end, wants_drain
from podstatus.agent.daemon.apiserver_main import CannotServeError, call_at_eof, reachable
from podstatus.agent.daemon.apiserver_process import (
    CannotStartApiServerError,
    EmbeddedApiServer,
    NodeTrust,
)
from podstatus.agent.daemon.logging_setup import logged_to
from podstatus.agent.daemon.root_dir import (
    FOLDERS,
    Endpoints,
    RootDir,
    RootDirError,
    can_tell,
    is_full,
    tell_when_there_is_room,
)
from podstatus.agent.settings.model import AgentSettings
from podstatus.alerts.evaluator.ports import EvaluatorError
from podstatus.alerts.evaluator.process import EvaluatorProcess
from podstatus.apiserver.pki.certificates import CA_CERTIFICATE
from podstatus.base.aio import wall_clock_ns
from podstatus.client.auth.config import ClientConfig
from podstatus.client.auth.load_config import in_cluster_config, kubeconfig_config
from podstatus.client.errors import KubeconfigError
from podstatus.workers.shutdown.plan import total_seconds

logger = logging.getLogger(__name__)

FAILED = 1
MISTAKE = 2
"""Exit code of what another try does not repair: settings, a root-dir that cannot be used."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SECONDS_TO_STOP = 4.5
"""After which it ends by force: whoever asked waits 5."""


class CannotRunError(Exception):
    """The agent cannot run; the message says why and what to do."""

    def __init__(self, message: str, *, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is built from."""

    settings: AgentSettings
    root: RootDir
    access: ClientConfig
    port: PortFiles | None = None
    """For the agent's HTTPS port; None: there is none."""
    rules: AlertRules | None = None
    """What to look for; None: nothing."""
    restarted: str = ""
    """Why the agent before this one ended, if it did not mean to; for an event."""


class Listening(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agent listens."""

    agent: str = ""
    """Its HTTPS port."""
    health: str = ""
    observes: bool = False
    """It is no node: it looks on at a cluster."""


class Agent(Protocol):
    """A node."""

    async def run(self, serving: Callable[[Listening], None]) -> None:
        """Be a node until cancelled; say where it listens, once it does. Raises CannotRunError."""


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """Where things are."""

    settings: AgentSettings
    apiserver: str
    agent: str
    kubeconfig: Path | None


class _Server(msgspec.Struct, frozen=True, kw_only=True):
    """The API server, ours or not."""

    access: ClientConfig
    token: str = ""
    kubeconfig: Path | None = None
    authority: Path | None = None
    child: EmbeddedApiServer | None = None


Raised = TypeVar("Raised", bound=BaseException)
Build = Callable[[Surroundings], Agent]
Announce = Callable[[Running], None]


async def run_agent(
    settings: AgentSettings,
    build: Build,
    announce: Announce,
    *,
    say: Say = lambda _: None,
    restarted: str = "",
    stop_at_eof: bool = False,
    folders: Iterable[str] = FOLDERS,
) -> bool:
    """Be a node until SIGINT, SIGTERM or SIGHUP; a second one ends it at once.

    Whether its pods have ended before it: the settings may want that. `folders` are those that it
    needs in its root-dir. Raises CannotRunError.
    """
    drained, node = False, _Node(build, announce)
    with _stopped_by_signal() as stop:
        stopped = stop.event
        if stop_at_eof:
            _stop_at_eof(stop)
        try:
            async with asyncio.TaskGroup() as group:
                running = _run(settings, node.build, node.announce, restarted, folders)
                whole = group.create_task(running, name="agent")
                stopping = group.create_task(stopped.wait(), name="stop")
                await asyncio.wait({whole, stopping}, return_when=asyncio.FIRST_COMPLETED)
                draining = None if whole.done() else node.find_draining()
                if draining is not None and await wants_drain(settings):
                    stop.force_after(total_seconds(settings.shutdown_periods) + _SECONDS_TO_STOP)
                    drained = await drain_at_end(draining, whole, say)
                    stop.force_after(_SECONDS_TO_STOP)
                whole.cancel()
                stopping.cancel()
        except BaseExceptionGroup as errors:
            # Not `except*`: Python before 3.11.4 makes another group of what is raised there.
            told, others = errors.split((CannotRunError, RootDirError))
            if told is None or others is not None:
                raise
            raise _cannot_run(_first(told)) from errors
    return drained


class _Node:
    """The node that was built, for those who have something to ask of it when it is to end."""

    def __init__(self, build: Build, announce: Announce) -> None:
        self._build = build
        self._announce = announce
        self._agent: object = None
        self._serves = False

    def build(self, surroundings: Surroundings) -> Agent:
        """Build it."""
        self._agent = agent = self._build(surroundings)
        return agent

    def announce(self, running: Running) -> None:
        """It serves."""
        self._serves = True
        self._announce(running)

    def find_draining(self) -> Draining | None:
        """It, if it serves and can end its pods."""
        return self._agent if self._serves and isinstance(self._agent, Draining) else None


async def _run(
    settings: AgentSettings,
    build: Build,
    announce: Announce,
    restarted: str,
    folders: Iterable[str],
) -> None:
    async with AsyncExitStack() as stack:
        root = stack.enter_context(RootDir(settings.root_dir, folders))
        stack.enter_context(logged_to(root.folder("logs"), settings.v, settings.log_format))
        rules = await stack.enter_async_context(_alert_rules(settings))
        certificate = _make_certificate(settings, root)
        async with _server(settings, root, certificate) as server:
            surroundings = Surroundings(
                settings=settings,
                root=root,
                access=server.access,
                port=_port_files(settings, root, server),
                rules=rules,
                restarted=restarted,
            )
            await _be_a_node(surroundings, server, build(surroundings), announce)


async def _be_a_node(
    surroundings: Surroundings, server: _Server, agent: Agent, announce: Announce
) -> None:
    settings, root = surroundings.settings, surroundings.root

    def serving(where: Listening) -> None:
        endpoints = _endpoints(surroundings, server, where)
        if not can_tell(root, endpoints):
            group.create_task(tell_when_there_is_room(root, endpoints), name="endpoints")
        announce(
            Running(
                settings=settings,
                apiserver=server.access.server,
                agent=where.agent or where.health,
                kubeconfig=server.kubeconfig,
            )
        )

    async def be() -> None:
        await agent.run(serving)
        raise CannotRunError("the agent ended though nobody asked it to")

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(be(), name="node")
            if server.child is not None:
                group.create_task(server.child.run(), name="apiserver")
                group.create_task(server.child.keep_log_short(), name="apiserver log")
    finally:
        root.withdraw()


@asynccontextmanager
async def _alert_rules(settings: AgentSettings) -> AsyncIterator[AlertRules | None]:
    """The alert rules, if they are to be asked. Raises CannotRunError for files of no use.

    They are checked in a thread: a stop ends the process that it waits for.
    """
    if not settings.alerts:
        yield None
        return
    with EvaluatorProcess() as evaluator:
        yield await asyncio.to_thread(_load_rules, settings, evaluator)


def _load_rules(settings: AgentSettings, evaluator: EvaluatorProcess) -> AlertRules:
    try:
        rules = load_alert_rules(settings.alert_rules, evaluator)
    except AlertRulesError as error:
        raise CannotRunError(str(error), code=MISTAKE) from error
    except EvaluatorError as error:
        raise CannotRunError(f"alert rules cannot be checked: {error}") from error
    for mistake in rules.unasked:
        logger.error("alert rule is not asked: %s", mistake)
    for note in rules.notes:
        logger.warning("alert rules: %s", note)
    return rules


def _make_certificate(settings: AgentSettings, root: RootDir) -> Path:
    """Have the certificate of our port before there is an API server that is to trust it."""
    try:
        certificate, _ = find_certificate(settings, root.folder("pki"), wall_clock_ns())
    except CannotServeNodeError as error:
        raise CannotRunError(str(error), code=MISTAKE) from error
    return certificate


def _port_files(settings: AgentSettings, root: RootDir, server: _Server) -> PortFiles:
    try:
        return find_port_files(
            settings,
            root.folder("pki"),
            wall_clock_ns(),
            token=server.token,
            own_client_ca=server.authority,
        )
    except CannotServeNodeError as error:
        raise CannotRunError(str(error), code=MISTAKE) from error


def _endpoints(surroundings: Surroundings, server: _Server, where: Listening) -> Endpoints:
    settings, port = surroundings.settings, surroundings.port
    return Endpoints(
        apiserver=server.access.server,
        agent=where.agent,
        health=where.health,
        token=server.token if port is None else port.token,
        agent_certificate="" if port is None else str(port.certificate),
        kubeconfig="" if server.kubeconfig is None else str(server.kubeconfig),
        certificate_authority="" if server.authority is None else str(server.authority),
        node="" if where.observes else settings.node_name,
        observes=where.observes,
        pid=os.getpid(),
    )


def _cannot_run(error: BaseException) -> CannotRunError:
    if isinstance(error, CannotRunError):
        return error
    return CannotRunError(str(error), code=FAILED if is_full(error) else MISTAKE)


def _first(errors: BaseExceptionGroup[Raised]) -> Raised:
    error = errors.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


@asynccontextmanager
async def _server(
    settings: AgentSettings, root: RootDir, certificate: Path
) -> AsyncIterator[_Server]:
    if not settings.embedded:
        yield _other_server(settings)
        return
    log, port = root.apiserver_log, settings.apiserver_port
    nodes = NodeTrust(authority=certificate, address=reachable(settings.address))
    async with EmbeddedApiServer(root.folder("apiserver"), log, port=port, nodes=nodes) as child:
        try:
            files = await child.start()
        except CannotStartApiServerError as error:
            raise CannotRunError(str(error)) from error
        kubeconfig = root.hand_out(files.kubeconfig)
        access = kubeconfig_config(kubeconfig, environment={})
        yield _Server(
            access=access,
            token=files.token,
            kubeconfig=kubeconfig,
            authority=root.folder("apiserver") / CA_CERTIFICATE,
            child=child,
        )


def _other_server(settings: AgentSettings) -> _Server:
    try:
        if settings.kubeconfig is None:
            return _Server(access=in_cluster_config())
        access = kubeconfig_config(settings.kubeconfig)
    except KubeconfigError as error:
        raise CannotRunError(str(error), code=MISTAKE) from error
    return _Server(access=access, kubeconfig=settings.kubeconfig.absolute())


class _Stop:
    """Says that it is time to end; who takes too long then is ended by force."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self._force: threading.Timer | None = None

    def begin(self) -> None:
        """End; the next signal ends the process."""
        if self.event.is_set():
            return
        self.event.set()
        self.force_after(_SECONDS_TO_STOP)
        for number in _SIGNALS:
            asyncio.get_running_loop().remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    def force_after(self, seconds: float) -> None:
        """End by force so many seconds from now, and not when it was to be before."""
        self.over()
        self._force = threading.Timer(seconds, _give_up, (seconds,))
        self._force.daemon = True
        self._force.start()

    def over(self) -> None:
        """Everything has ended."""
        if self._force is not None:
            self._force.cancel()


@contextmanager
def _stopped_by_signal() -> Iterator[_Stop]:
    stop = _Stop()
    for number in _SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stop.begin)
    try:
        yield stop
    finally:
        stop.over()


def _stop_at_eof(stop: _Stop) -> None:
    try:
        call_at_eof(stop.begin)
    except CannotServeError as error:
        raise CannotRunError(str(error), code=MISTAKE) from error


def _give_up(seconds: float) -> None:
    sys.stderr.write(f"podstatus: not everything ended within {seconds:g} s; forced\n")
    sys.stderr.flush()
    os._exit(FAILED)
