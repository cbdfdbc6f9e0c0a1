"""Run the embedded API server until a signal: state directory, certificates, token."""

import asyncio
import errno
import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import msgspec

from podstatus.agent.daemon.apiserver_process import READY_FD_VARIABLE, EmbeddedServerAccess
from podstatus.agent.daemon.stdin_eof import call_on_stdin_eof
from podstatus.agent.errors import AgentError
from podstatus.apiserver.controllers.decide.policy import NodeMonitorPolicy
from podstatus.apiserver.kubelet.kubelet_client import KubeletClientConfig
from podstatus.apiserver.pki.certificates import KUBELET_CLIENT, Certificates, renew_periodically
from podstatus.apiserver.pki.token_and_kubeconfig import (
    ClientCredentials,
    ensure_signing_key,
    ensure_token,
    kubeconfig,
    write_client_files,
)
from podstatus.apiserver.server import ApiServer, ApiServerOptions
from podstatus.apiserver.state_dir import StateDir, StateDirError
from podstatus.apiserver.storage.sqlite_file import DATABASE
from podstatus.apiserver.storage.store import StorageError, Store
from podstatus.apiserver.strategies.by_resource import selectable_fields
from podstatus.base.system_clock import SystemClock
from podstatus.base.system_time import wall_clock_ns
from podstatus.client.kubeconfig.server_url import local_url


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
    node_monitor: NodeMonitorPolicy = NodeMonitorPolicy()


class ServerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the start banner."""

    url: str
    kubeconfig: Path
    where: str
    """Storage location of the objects, for the banner."""


AnnounceServer = Callable[[ServerInfo], None]


async def serve_api(settings: ApiServerSettings, announce: AnnounceServer) -> None:
    """Serve until SIGINT, SIGTERM or SIGHUP. Raises AgentError."""
    stopped = _stop_on_signals()
    if settings.stop_at_eof:
        call_on_stdin_eof(stopped.set)
    try:
        with _state_dir(settings.root_dir) as folder:
            await _serve_from(folder, settings, announce, stopped)
    except StateDirError as error:
        raise AgentError(str(error)) from error


async def _serve_from(
    folder: StateDir,
    settings: ApiServerSettings,
    announce: AnnounceServer,
    stopped: asyncio.Event,
) -> None:
    certificates = Certificates(folder, wall_clock_ns())
    authority = certificates.ensure([settings.host])
    token, ssl_context = ensure_token(folder), certificates.server_context()
    with closing(_open_store(folder, settings)) as store:
        options = ApiServerOptions(
            host=settings.host,
            port=settings.port,
            faults=settings.faults,
            schedule=True,
            node_monitor=settings.node_monitor,
            authority=authority,
            signing_key=ensure_signing_key(folder),
            kubelet=KubeletClientConfig(
                certificate=folder.path / f"{KUBELET_CLIENT}.crt",
                key=folder.path / f"{KUBELET_CLIENT}.key",
                authority=settings.node_authority,
                address=settings.node_address,
            ),
        )
        server = ApiServer(store, token=token, ssl_context=ssl_context, options=options)
        try:
            url = local_url(settings.host, await _start(server, settings))
            access = ClientCredentials(url=url, token=token, authority=authority)
            where = f"in {folder.path}" if settings.root_dir else "in memory"
            files = write_client_files(folder, access)
            announce(ServerInfo(url=url, kubeconfig=files, where=where))
            _report_ready(EmbeddedServerAccess(url=url, token=token, kubeconfig=kubeconfig(access)))
            renewing = asyncio.create_task(
                renew_periodically(folder, ssl_context, [settings.host], SystemClock())
            )
            await stopped.wait()
            renewing.cancel()
        finally:
            await server.stop()


def _open_store(folder: StateDir, settings: ApiServerSettings) -> Store:
    database = folder.path / DATABASE if settings.root_dir else None
    try:
        return Store.open(database, selectable_fields, cluster=settings.cluster_id)
    except StorageError as error:
        raise AgentError(str(error)) from error


def _report_ready(access: EmbeddedServerAccess) -> None:
    """Write to the parent's pipe, if there is one."""
    descriptor = os.environ.pop(READY_FD_VARIABLE, "")
    # A parent that has exited closed standard input, too, and the server stops.
    with suppress(BrokenPipeError):
        if descriptor:
            with os.fdopen(int(descriptor), "wb") as pipe:
                pipe.write(msgspec.json.encode(access) + b"\n")


async def _start(server: ApiServer, settings: ApiServerSettings) -> int:
    try:
        return await server.start()
    except OSError as error:
        raise AgentError(_listen_error(error, settings)) from error


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
