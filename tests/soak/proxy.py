"""Stands between the agent and its API server: passes bytes on, counts requests, fails.

Towards the agent it speaks plain HTTP, so that requests can be counted; to the server TLS. The
agent sends its token to nobody without TLS, so the proxy adds it.
"""

import asyncio
import re
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

Found = TypeVar("Found")

_REQUEST = re.compile(rb"(?:^|(?<=\n))([A-Z]{3,7}) (/[^ ?]*)(\?[^ ]*)? HTTP/1\.1\r\n")
_CHUNK = 65536
_SLOW_SECONDS = 0.15
_LOSSY_BYTES = 700
"""After so many bytes of an answer a connection is reset: in the middle of a body."""


class Way(Enum):
    """How the network is."""

    OPEN = "as it should be"
    REFUSED = "nobody listens, and what was open is cut"
    SILENT = "connections stay open, and nothing comes through"
    LOSSY = "connections are reset in the middle of an answer"
    SLOW = "all takes its time"


class Proxy:
    """Serves in a thread of its own, at `port`."""

    def __init__(self, server_port: int, authority: Path, token: str) -> None:
        self._server_port = server_port
        self._token = f"Authorization: Bearer {token}\r\n".encode()
        self._tls = ssl.create_default_context(cafile=str(authority))
        self._way = Way.OPEN
        self._loop = asyncio.new_event_loop()
        self._listener: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._heard: asyncio.Event | None = None
        self._lock = threading.Lock()
        self._counted: Counter[str] = Counter()
        self.port = 0
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)

    def start(self) -> None:
        """Serve."""
        self._thread.start()
        self._call(self._listen())

    def stop(self) -> None:
        """End, with all connections."""
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def turn(self, way: Way) -> None:
        """Let the network be like this from now on."""
        self._call(self._turn(way))

    def counted(self) -> Counter[str]:
        """How often what was asked so far, such as `PATCH pods/status`."""
        with self._lock:
            return Counter(self._counted)

    def _call(self, work: Coroutine[Any, Any, Found]) -> Found:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(90)

    async def _listen(self) -> None:
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._listener.sockets[0].getsockname()[1]
        if self._heard is None:
            self._heard = asyncio.Event()
            self._heard.set()

    async def _turn(self, way: Way) -> None:
        before, self._way = self._way, way
        assert self._heard is not None
        if way is Way.REFUSED:
            await self._close()
        elif before is Way.REFUSED:
            await self._listen()
        if way is Way.SILENT:
            self._heard.clear()
        else:
            self._heard.set()
        if before is Way.SILENT:  # as when routes come back: what was sent is not there
            self._cut()

    async def _close(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        self._cut()

    def _cut(self) -> None:
        for writer in list(self._open):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        upstream: asyncio.StreamWriter | None = None
        try:
            with suppress(OSError):
                answers, upstream = await asyncio.open_connection(
                    "127.0.0.1", self._server_port, ssl=self._tls, server_hostname="127.0.0.1"
                )
                self._open.add(upstream)
                asking = asyncio.ensure_future(self._pass_on(reader, upstream, self._asked))
                await self._pass_on(answers, writer, _answered, lossy=True)
                asking.cancel()
        finally:
            for end in (writer, upstream):
                if end is not None:
                    self._open.discard(end)
                    end.transport.abort()

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        through: Callable[[bytes], bytes],
        *,
        lossy: bool = False,
    ) -> None:
        assert self._heard is not None
        with suppress(OSError):
            while data := await reader.read(_CHUNK):
                await self._heard.wait()
                data = through(data)
                if self._way is Way.SLOW:
                    await asyncio.sleep(_SLOW_SECONDS)
                if lossy and self._way is Way.LOSSY:
                    writer.write(data[:_LOSSY_BYTES])
                    await writer.drain()
                    return
                writer.write(data)
                await writer.drain()

    def _asked(self, data: bytes) -> bytes:
        """Count requests, and say who asks."""
        with self._lock:
            for method, path, query in _REQUEST.findall(data):
                self._counted[name_of(method.decode(), path.decode(), query.decode())] += 1
        return _REQUEST.sub(lambda found: found[0] + self._token, data)


def name_of(method: str, path: str, query: str) -> str:
    """What a request is about, without names: `PATCH pods/status`, `WATCH pods`."""
    words = [word for word in path.split("/") if word]
    words = words[2:] if words[:1] == ["api"] else words[3:]
    if words[:1] == ["namespaces"] and len(words) > 2:
        words = words[2:]
    resource = "/".join((words[:1] or [path]) + words[2:])
    return f"{'WATCH' if 'watch=' in query else method} {resource}"


def _answered(data: bytes) -> bytes:
    """Nobody counts answers."""
    return data
