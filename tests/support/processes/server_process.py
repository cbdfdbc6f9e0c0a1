"""The API server in a process of its own, to be killed, starved and shouted at.

Forked from a process that has imported everything: a start takes milliseconds, so that a test
can afford a hundred.
"""

import asyncio
import json
import logging
import multiprocessing
import os
import resource
import signal
import ssl
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from podstatus.apiserver import listener
from podstatus.apiserver.handlers import watch as watching
from podstatus.apiserver.server import ApiServer, ApiServerOptions
from podstatus.apiserver.storage import watch_cache
from podstatus.apiserver.storage.store import Store
from podstatus.apiserver.strategies.by_resource import selectable_fields
from podstatus.base.net import accept_loop

TOKEN = "a-token-that-nobody-may-log"  # noqa: S105 - of servers that live for a test
_MODULES = {
    "accept_loop": accept_loop,
    "hub": watch_cache,
    "listener": listener,
    "watching": watching,
}
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["pytest", __name__])

Document = dict[str, Any]


class ServerProcess:
    """A server. Settings are constants of its modules: `listener.BODY_SECONDS`."""

    def __init__(
        self,
        path: Path | None = None,
        *,
        log: Path | None = None,
        tls: Path | None = None,
        settings: Mapping[str, float] | None = None,
        faults: bool = False,
    ) -> None:
        ours, theirs = _FORKS.Pipe()
        self._commands = ours
        self._process = _FORKS.Process(
            target=_serve, args=(theirs, path, log, tls, settings or {}, faults), daemon=True
        )
        self._process.start()
        theirs.close()
        self.port: int = ours.recv()

    def kill(self) -> None:
        """Without a chance to put anything in order."""
        assert self._process.pid is not None
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.join()
        self._process.close()
        self._commands.close()

    def compact(self) -> None:
        """Let the server forget all changes."""
        self._commands.send("compact")
        self._commands.recv()

    def peak_bytes(self) -> int:
        """How much memory the process held when it held most."""
        self._commands.send("measure")
        peak: int = self._commands.recv()
        return peak


@contextmanager
def running(path: Path | None = None, **options: Any) -> Iterator[ServerProcess]:
    server = ServerProcess(path, **options)
    try:
        yield server
    finally:
        server.kill()


class Client:
    """One connection, kept alive."""

    def __init__(self, port: int, *, timeout: float = 20) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=timeout)

    def ask(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> tuple[int, Document]:
        """Code and body of the answer."""
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": content_type}
        sent = None if body is None else json.dumps(body).encode()
        self._connection.request(method, path, sent, headers)
        response = self._connection.getresponse()
        return response.status, json.loads(response.read() or b"{}")

    def watch(self, path: str) -> Iterator[Document]:
        """The events of a watch, until it ends. A line that is not whole is dropped."""
        self._connection.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})
        response = self._connection.getresponse()
        if response.status != 200:
            yield {"type": "ERROR", "object": json.loads(response.read())}
            return
        while (line := response.readline()).endswith(b"\n"):
            yield json.loads(line)

    def close(self) -> None:
        self._connection.close()


def _serve(
    pipe: Connection,
    path: Path | None,
    log: Path | None,
    tls: Path | None,
    settings: Mapping[str, float],
    faults: bool,
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(filename=log or os.devnull, level=logging.DEBUG, force=True)
    for name, value in settings.items():
        module, _, constant = name.partition(".")
        assert hasattr(_MODULES[module], constant)
        setattr(_MODULES[module], constant, value)
    asyncio.run(_run(pipe, path, tls, faults=faults))


async def _run(pipe: Connection, path: Path | None, tls: Path | None, *, faults: bool) -> None:
    store = Store.open(path, selectable_fields)
    context = None
    if tls is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(tls / "server.crt", tls / "server.key")
    server = ApiServer(
        store, token=TOKEN, ssl_context=context, options=ApiServerOptions(faults=faults)
    )
    pipe.send(await server.start())
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_reader(pipe.fileno(), _obey, pipe, server, stopped)
    await stopped.wait()


def _obey(pipe: Connection, server: ApiServer, stopped: asyncio.Event) -> None:
    try:
        command = pipe.recv()
    except EOFError:
        stopped.set()
        return
    if command == "compact":
        server.compact()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    pipe.send(peak if sys.platform == "darwin" else peak * 1024)
