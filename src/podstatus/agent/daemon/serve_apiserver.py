"""Run the embedded API server until a signal: state directory, certificates, token."""

import asyncio
import errno
import os
import signal
import ssl
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Protocol

import msgspec

from podstatus.apiserver.kubelet.kubelet_client import KubeletClientConfig
from podstatus.apiserver.pki.certificates import KUBELET_CLIENT, Certificates, renew_periodically
from podstatus.apiserver.pki.token_and_kubeconfig import (
    ClientCredentials,
    ensure_token,
    kubeconfig,
    write_client_files,
)
from podstatus.apiserver.state_dir import StateDir, StateDirError
from podstatus.apiserver.storage.sqlite_file import DATABASE
from podstatus.base.system_clock import SystemClock
from podstatus.base.system_time import wall_clock_ns
from podstatus.client.kubeconfig.server_url import host_and_port

READY_FD_VARIABLE = "PODSTATUS_READY_FD"
"""Environment variable of a child process: the inherited pipe for its `EmbeddedServerAccess`."""
_STDIN = 0
_LOOPBACK_BY_WILDCARD = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not listened on


class ServeError(Exception):
    """The server cannot start; the message has the reason and the remedy."""


class ApiServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `podstatus apiserver`."""

    root_dir: Path | None = None
    """None: objects stay in memory, credentials in a temporary directory."""
    host: str = "127.0.0.1"
    port: int = 6443
    faults: bool = False
    stop_at_eof: bool = False
    """Stop when standard input closes, that is, when the parent process exits."""
    cluster_id: str = ""
    """Refuse a database of another cluster; empty: accept any."""
    node_authority: Path | None = None
    """CA certificate of the nodes' serving certificates."""
    node_address: str = ""
    """Address of the nodes' servers; empty: the InternalIP of each Node."""


class ApiServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a server is built from."""

    database: Path | None
    cluster: str
    """Required cluster ID of the database; empty: any."""
    token: str
    ssl_context: ssl.SSLContext
    host: str
    port: int
    faults: bool
    nodes: KubeletClientConfig


class StartableServer(Protocol):
    """A server that has been built but not started."""

    async def start(self) -> int:
        """Start to listen and return the port. Raises OSError."""

    async def stop(self) -> None:
        """Close all connections and the database."""


class ServerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the start banner."""

    url: str
    kubeconfig: Path
    where: str
    """Storage location of the objects, for the banner."""


class EmbeddedServerAccess(msgspec.Struct, frozen=True, kw_only=True):
    """URL and credentials of a server, written to the pipe of READY_FD_VARIABLE when it serves.

    One line of JSON. The pipe closes without it if the server does not start.
    """

    url: str
    token: str
    kubeconfig: bytes

    def __repr__(self) -> str:
        return f"EmbeddedServerAccess({self.url!r}, …)"


BuildServer = Callable[[ApiServerConfig], StartableServer]
AnnounceServer = Callable[[ServerInfo], None]


async def serve_api(
    settings: ApiServerSettings, build: BuildServer, announce: AnnounceServer
) -> None:
    """Serve until SIGINT, SIGTERM or SIGHUP. Raises ServeError."""
    stopped = _stop_on_signals()
    if settings.stop_at_eof:
        call_on_stdin_eof(stopped.set)
    try:
        with _state_dir(settings.root_dir) as folder:
            await _serve_from(folder, settings, build, announce, stopped)
    except StateDirError as error:
        raise ServeError(str(error)) from error


async def _serve_from(
    folder: StateDir,
    settings: ApiServerSettings,
    build: BuildServer,
    announce: AnnounceServer,
    stopped: asyncio.Event,
) -> None:
    certificates = Certificates(folder, wall_clock_ns())
    authority = certificates.ensure([settings.host])
    parts = ApiServerConfig(
        database=folder.path / DATABASE if settings.root_dir else None,
        cluster=settings.cluster_id,
        token=ensure_token(folder),
        ssl_context=certificates.server_context(),
        host=settings.host,
        port=settings.port,
        faults=settings.faults,
        nodes=KubeletClientConfig(
            certificate=folder.path / f"{KUBELET_CLIENT}.crt",
            key=folder.path / f"{KUBELET_CLIENT}.key",
            authority=settings.node_authority,
            address=settings.node_address,
        ),
    )
    server = build(parts)
    try:
        url = local_url(settings.host, await _start(server, settings))
        access = ClientCredentials(url=url, token=parts.token, authority=authority)
        where = f"in {folder.path}" if settings.root_dir else "in memory"
        announce(ServerInfo(url=url, kubeconfig=write_client_files(folder, access), where=where))
        _report_ready(
            EmbeddedServerAccess(url=url, token=parts.token, kubeconfig=kubeconfig(access))
        )
        renewing = asyncio.create_task(
            renew_periodically(folder, parts.ssl_context, [settings.host], SystemClock())
        )
        await stopped.wait()
        renewing.cancel()
    finally:
        await server.stop()


def _report_ready(access: EmbeddedServerAccess) -> None:
    """Write to the parent's pipe, if there is one."""
    descriptor = os.environ.pop(READY_FD_VARIABLE, "")
    # A parent that has exited closed standard input, too, and the server stops.
    with suppress(BrokenPipeError):
        if descriptor:
            with os.fdopen(int(descriptor), "wb") as pipe:
                pipe.write(msgspec.json.encode(access) + b"\n")


async def _start(server: StartableServer, settings: ApiServerSettings) -> int:
    try:
        return await server.start()
    except OSError as error:
        raise ServeError(_listen_error(error, settings)) from error


def _listen_error(error: OSError, settings: ApiServerSettings) -> str:
    tried = f"cannot listen on {settings.host} port {settings.port}"
    if error.errno == errno.EADDRINUSE:
        return (
            f"{tried}: the port is in use; stop the process that uses it, or pass another --port "
            "(0 picks a free one)"
        )
    if error.errno == errno.EACCES:
        return f"{tried}: permission denied; pass a --port of 1024 or above"
    reason = (error.strerror or str(error)).lower()
    return f"{tried}: {reason}; pass a --host that is an address of this machine"


def _stop_on_signals() -> asyncio.Event:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stopped.set)
    return stopped


def call_on_stdin_eof(call: Callable[[], None]) -> None:
    """Call `call` once the other end of standard input is closed. Raises ServeError."""
    loop = asyncio.get_running_loop()

    def on_readable() -> None:
        if not os.read(_STDIN, 4096):
            loop.remove_reader(_STDIN)
            call()

    try:
        loop.add_reader(_STDIN, on_readable)
    except (OSError, ValueError) as error:  # closed, or a regular file, which epoll rejects
        raise ServeError("--stop-at-eof: standard input is not a pipe") from error


@contextmanager
def _state_dir(path: Path | None) -> Iterator[StateDir]:
    if path is not None:
        with closing(StateDir(path)) as folder:
            yield folder
        return
    with (
        tempfile.TemporaryDirectory(prefix="podstatus-") as temporary,
        closing(StateDir(Path(temporary))) as folder,
    ):
        yield folder


def reachable_host(host: str) -> str:
    """Return the address by which local clients reach a server that listens on `host`."""
    return _LOOPBACK_BY_WILDCARD.get(host, host)


def local_url(host: str, port: int) -> str:
    """Return the URL by which local clients reach an HTTPS server that listens on `host`."""
    return f"https://{host_and_port(reachable_host(host), str(port))}"
