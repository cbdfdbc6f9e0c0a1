"""A Kubernetes API server for tests, in this process or as one of its own.

In a conftest.py: `pytest_plugins = ["podstatus.testing.apiserver"]`. Then

- `api_server` is a server in memory, in a thread of this process: up in a few milliseconds,
  and tests can look at what it stores;
- `api_server_process` is one that can be killed and started again; its objects survive.

Both speak TLS on loopback, take rules of what is to go wrong (docs/faults.md), and assign
nothing to nodes unless asked for. Without pytest: `running_api_server`, `ApiServerProcess`.
Needs `podstatus[agent]`.
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

from podstatus.apiserver.faults.middleware import FAULTS_PATH
from podstatus.apiserver.storage.store import StorageKey, Store
from podstatus.base.programs import python_module_command
from podstatus.testing.servers.access import TIMEOUT_SECONDS, Document, ServerAccess
from podstatus.testing.servers.embedded import RunningServer, serve
from podstatus.testing.servers.free_port import free_port

ResultT = TypeVar("ResultT")


class ApiAccess(ServerAccess):
    """How to reach an embedded server, which also takes faults."""

    def inject(self, *faults: Document) -> None:
        """Let these things go wrong from now on, and no others; see docs/faults.md."""
        code, answered = self.request("PUT", FAULTS_PATH, faults)
        if code != 200:
            raise ValueError(f"the server does not take these faults: {answered['message']}")


class ApiServerThread(ApiAccess):
    """A server in a thread of this process."""

    def __init__(self, folder: Path, loop: asyncio.AbstractEventLoop, store: Store) -> None:
        super().__init__(folder)
        self._loop = loop
        self._store = store

    def get_object(self, resource: str, name: str, namespace: str = "") -> Document | None:
        """An object as it is stored, by the plural of its kind; None if there is none."""
        found = self._read_store(lambda store: store.get(resource, StorageKey(namespace, name)))
        return None if found is None else found.document()

    def list_objects(self, resource: str, namespace: str | None = None) -> list[Document]:
        """All objects of a kind, or of one namespace, in the order of their names."""
        found = self._read_store(lambda store: list(store.objects(resource, namespace)))
        return [stored.document() for stored in found]

    def _read_store(self, read: Callable[[Store], ResultT]) -> ResultT:
        async def found() -> ResultT:
            return read(self._store)

        # The store is used by the server's thread alone.
        return asyncio.run_coroutine_threadsafe(found(), self._loop).result(TIMEOUT_SECONDS)


@contextmanager
def running_api_server(
    folder: Path,
    *,
    durable: bool = False,
    faults: bool = True,
    schedule: bool = False,
    node_authority: Path | None = None,
) -> Iterator[ApiServerThread]:
    """A server in a thread, its files in a folder; its objects too, if it is durable.

    `node_authority` is a file with who signs the certificates of nodes; without it there are no
    logs and no exec.
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
        ) as served:
            ready.append(served)
            started.set()
            await stopped.wait()

    def run_thread() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(run())
        except BaseException as error:  # noqa: BLE001 - told in the thread that asked for it
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
    """A server in a process of its own, with a folder that outlives it."""

    def __init__(self, folder: Path, *, faults: bool = True, schedule: bool = False) -> None:
        self.folder = folder
        asked = {"--faults": faults, "--schedule": schedule}
        self._options = [option for option, wanted in asked.items() if wanted]
        self._process: subprocess.Popen[str] | None = None
        self._port = free_port()

    def start(self) -> ApiAccess:
        """Serve, on the same port as before. Raises RuntimeError if it cannot."""
        if self._process is not None:
            raise RuntimeError("the API server is running already; stop() or kill() it first")
        command = [*python_module_command("podstatus.testing.servers.embedded"), str(self.folder)]
        self._process = subprocess.Popen(  # noqa: S603 - ourselves
            [*command, "--port", str(self._port), *self._options],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None  # noqa: S101 - a pipe was asked for
        if not self._process.stdout.readline():
            self.stop()
            raise RuntimeError(f"the API server in {self.folder} did not start; see its errors")
        access = ApiAccess(self.folder)
        self._port = urlsplit(access.url).port or 0
        return access

    def kill(self) -> None:
        """End it without a chance to say goodbye."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it in peace."""
        self._end(signal.SIGTERM)

    def pause(self) -> None:
        """Let it stand still: connections stay open, nothing is answered."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        if self._process is None:
            raise RuntimeError("the API server does not run; start() it first")
        self._process.send_signal(number)

    def _end(self, number: int) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(number)
            process.send_signal(signal.SIGCONT)  # it may be paused
            process.communicate(timeout=TIMEOUT_SECONDS)


@pytest.fixture
def api_server(tmp_path: Path) -> Iterator[ApiServerThread]:
    """A server in memory, for one test."""
    with running_api_server(tmp_path / "apiserver") as server:
        yield server


@pytest.fixture
def api_server_process(tmp_path: Path) -> Iterator[ApiServerProcess]:
    """A server in a process of its own, not started yet, for one test."""
    process = ApiServerProcess(tmp_path / "apiserver-process")
    yield process
    process.stop()
