"""Run an agent: its folder, an API server to talk to, the node itself, until a signal.

CannotRunError     it cannot start, or not go on; the message says why and what to do
"""

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from podstatus.agent.embedded import CannotStartApiServerError, EmbeddedApiServer, NodeTrust
from podstatus.agent.logs import logged_to
from podstatus.agent.root_dir import Endpoints, RootDir, RootDirError
from podstatus.agent.serve_api import CannotServeError, call_at_eof, reachable
from podstatus.agent.serve_node import PortFiles, find_certificate, find_port_files
from podstatus.agent.serving_certificate import CannotServeNodeError
from podstatus.agent.settings import AgentSettings
from podstatus.apiserver.certificates import AUTHORITY
from podstatus.client.access import Access
from podstatus.client.errors import KubeconfigError
from podstatus.client.find_access import in_cluster_access, kubeconfig_access

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
    access: Access
    port: PortFiles | None = None
    """For the agent's HTTPS port; None: there is none."""
    restarted: str = ""
    """Why the agent before this one ended, if it did not mean to; for an event."""


class Listening(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agent listens."""

    agent: str = ""
    """Its HTTPS port."""
    health: str = ""


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

    access: Access
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
    restarted: str = "",
    stop_at_eof: bool = False,
) -> None:
    """Be a node until SIGINT, SIGTERM or SIGHUP; a second one ends it at once.

    Raises CannotRunError.
    """
    with _stopped_by_signal() as stop:
        stopped = stop.event
        if stop_at_eof:
            _stop_at_eof(stop)
        try:
            async with asyncio.TaskGroup() as group:
                whole = group.create_task(_run(settings, build, announce, restarted), name="agent")
                stopping = group.create_task(stopped.wait(), name="stop")
                await asyncio.wait({whole, stopping}, return_when=asyncio.FIRST_COMPLETED)
                whole.cancel()
                stopping.cancel()
        except BaseExceptionGroup as errors:
            # Python before 3.11.4 wraps in a group of its own what is raised in an `except*`.
            error = _foreseen(errors)
            if error is None:
                raise
            raise error from errors


async def _run(settings: AgentSettings, build: Build, announce: Announce, restarted: str) -> None:
    with (
        RootDir(settings.root_dir) as root,
        logged_to(root.folder("logs"), settings.v, settings.log_format),
    ):
        certificate = _make_certificate(settings, root)
        async with _server(settings, root, certificate) as server:
            surroundings = Surroundings(
                settings=settings,
                root=root,
                access=server.access,
                port=_port_files(settings, root, server),
                restarted=restarted,
            )
            await _be_a_node(surroundings, server, build(surroundings), announce)


async def _be_a_node(
    surroundings: Surroundings, server: _Server, agent: Agent, announce: Announce
) -> None:
    settings, root = surroundings.settings, surroundings.root

    def serving(where: Listening) -> None:
        root.announce(_endpoints(surroundings, server, where))
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
    finally:
        root.withdraw()


def _make_certificate(settings: AgentSettings, root: RootDir) -> Path:
    """Have the certificate of our port before there is an API server that is to trust it."""
    try:
        certificate, _ = find_certificate(settings, root.folder("pki"), time.time_ns())
    except CannotServeNodeError as error:
        raise CannotRunError(str(error), code=MISTAKE) from error
    return certificate


def _port_files(settings: AgentSettings, root: RootDir, server: _Server) -> PortFiles:
    try:
        return find_port_files(
            settings,
            root.folder("pki"),
            time.time_ns(),
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
        node=settings.node_name,
        pid=os.getpid(),
    )


def _foreseen(errors: BaseExceptionGroup) -> CannotRunError | None:
    """Why it cannot run, if that is all that happened."""
    found, others = errors.split((CannotRunError, RootDirError))
    if found is None or others is not None:
        return None
    error = _first(found)
    return error if isinstance(error, CannotRunError) else CannotRunError(str(error), code=MISTAKE)


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
        access = kubeconfig_access(kubeconfig, environment={})
        yield _Server(
            access=access,
            token=files.token,
            kubeconfig=kubeconfig,
            authority=root.folder("apiserver") / AUTHORITY,
            child=child,
        )


def _other_server(settings: AgentSettings) -> _Server:
    try:
        if settings.kubeconfig is None:
            return _Server(access=in_cluster_access())
        access = kubeconfig_access(settings.kubeconfig)
    except KubeconfigError as error:
        raise CannotRunError(str(error), code=MISTAKE) from error
    return _Server(access=access, kubeconfig=settings.kubeconfig.absolute())


class _Stop:
    """Says that it is time to end; who takes too long then is ended by force."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self._force = threading.Timer(_SECONDS_TO_STOP, _give_up)
        self._force.daemon = True

    def begin(self) -> None:
        """End; the next signal ends the process."""
        if self.event.is_set():
            return
        self.event.set()
        self._force.start()
        for number in _SIGNALS:
            asyncio.get_running_loop().remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    def over(self) -> None:
        """Everything has ended."""
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


def _give_up() -> None:
    sys.stderr.write(f"podstatus: not everything ended within {_SECONDS_TO_STOP:g} s; forced\n")
    sys.stderr.flush()
    os._exit(FAILED)
