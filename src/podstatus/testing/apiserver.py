"""A Kubernetes API server for tests, in this process or in a child process.

In a conftest.py: `pytest_plugins = ["podstatus.testing.apiserver"]`. Then

- `api_server` runs in a thread of this process, in memory: it starts in a few milliseconds, and
  tests can read its store;
- `api_server_process` can be killed and restarted; its objects survive.

Both serve TLS on loopback, support fault injection (docs/how-to/inject-faults.md), and schedule no
pods by default. Without pytest: `running_api_server`, `ApiServerProcess`. Needs `podstatus[agent]`.
"""

import asyncio
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import pytest

from podstatus.apiserver.controllers.decide.policy import NodeMonitorPolicy
from podstatus.apiserver.faults.middleware import FAULTS_PATH
from podstatus.apiserver.storage.store import StorageKey, Store
from podstatus.base.programs import python_module_command
from podstatus.testing.servers.access import TIMEOUT_SECONDS, Document, ServerAccess
from podstatus.testing.servers.embedded import RunningServer, serve
from podstatus.testing.servers.free_port import free_port

ResultT = TypeVar("ResultT")


class ApiAccess(ServerAccess):
    """Access to an embedded server, with fault injection."""

    def inject(self, *faults: Document) -> None:
        """Replace the fault rules of the server (docs/how-to/inject-faults.md).

        Raises ValueError if one is invalid.
        """
        code, response = self.request("PUT", FAULTS_PATH, faults)
        if code != 200:
            raise ValueError(f"the server rejected the faults: {response['message']}")


class ApiServerThread(ApiAccess):
    """A server in a thread of this process."""

    def __init__(self, folder: Path, loop: asyncio.AbstractEventLoop, store: Store) -> None:
        super().__init__(folder)
        self._loop = loop
        self._store = store

    def get_object(self, resource: str, name: str, namespace: str = "") -> Document | None:
        """Return a stored object by plural resource name; None if it does not exist."""
        stored = self._read_store(lambda store: store.get(resource, StorageKey(namespace, name)))
        return None if stored is None else stored.document()

    def list_objects(self, resource: str, namespace: str | None = None) -> list[Document]:
        """Return the objects of a resource, or of one namespace, sorted by name."""
        objects = self._read_store(lambda store: list(store.objects(resource, namespace)))
        return [stored.document() for stored in objects]

    def _read_store(self, read: Callable[[Store], ResultT]) -> ResultT:
        async def call() -> ResultT:
            return read(self._store)

        # Only the server's thread may use the store.
        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(TIMEOUT_SECONDS)


@contextmanager
def running_api_server(
    folder: Path,
    *,
    durable: bool = False,
    faults: bool = True,
    schedule: bool = False,
    node_authority: Path | None = None,
    node_monitor: NodeMonitorPolicy | None = None,
) -> Iterator[ApiServerThread]:
    """Run a server in a thread, with its files in `folder`.

    `durable` also stores the objects there. `node_authority` is the CA bundle (PEM) for nodes;
    without it, logs and exec are unavailable. With `schedule`, `node_monitor` says when a node is
    silent.
    """
    ready: list[RunningServer] = []
    started = threading.Event()
    failures: list[BaseException] = []
    loop, stopped = asyncio.new_event_loop(), asyncio.Event()

    async def run() -> None:
        async with serve(
            folder,
            durable=durable,
            faults=faults,
            schedule=schedule,
            node_authority=node_authority,
            node_monitor=node_monitor,
        ) as served:
            ready.append(served)
            started.set()
            await stopped.wait()

    def run_thread() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(run())
        except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
            failures.append(error)
        started.set()

    thread = threading.Thread(target=run_thread, name="podstatus-apiserver")
    thread.start()
    try:
        started.wait()
        if ready:
            yield ApiServerThread(folder, loop, ready[0].store)
    finally:
        if not loop.is_closed():
            loop.call_soon_threadsafe(stopped.set)
        thread.join()
    if failures:
        raise failures[0]


class ApiServerProcess:
    """A server in a child process; its folder, with the objects, outlives it."""

    def __init__(self, folder: Path, *, faults: bool = True, schedule: bool = False) -> None:
        self.folder = folder
        flags = {"--faults": faults, "--schedule": schedule}
        self._options = [flag for flag, enabled in flags.items() if enabled]
        self._process: subprocess.Popen[str] | None = None
        self._port = free_port()

    def start(self) -> ApiAccess:
        """Start on the same port as before. Raises RuntimeError if it fails."""
        if self._process is not None:
            raise RuntimeError("the API server is already running; stop() or kill() it first")
        command = [*python_module_command("podstatus.testing.servers.embedded"), str(self.folder)]
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            [*command, "--port", str(self._port), *self._options],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None  # noqa: S101 - stdout is a pipe
        if not self._process.stdout.readline():
            self.stop()
            raise RuntimeError(f"the API server in {self.folder} did not start; see its stderr")
        access = ApiAccess(self.folder)
        self._port = urlsplit(access.url).port or 0
        return access

    def kill(self) -> None:
        """Send SIGKILL and wait for the exit."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Send SIGTERM and wait for the exit."""
        self._end(signal.SIGTERM)

    def pause(self) -> None:
        """Send SIGSTOP: connections stay open, requests are not answered."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Send SIGCONT to a paused server."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        if self._process is None:
            raise RuntimeError("the API server is not running; start() it first")
        self._process.send_signal(number)

    def _end(self, number: int) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(number)
            process.send_signal(signal.SIGCONT)  # in case it is paused
            process.communicate(timeout=TIMEOUT_SECONDS)


@pytest.fixture
def api_server(tmp_path: Path) -> Iterator[ApiServerThread]:
    """A server in memory, for one test."""
    with running_api_server(tmp_path / "apiserver") as server:
        yield server


@pytest.fixture
def api_server_process(tmp_path: Path) -> Iterator[ApiServerProcess]:
    """A server in a child process, not yet started, for one test."""
    process = ApiServerProcess(tmp_path / "apiserver-process")
    yield process
    process.stop()
