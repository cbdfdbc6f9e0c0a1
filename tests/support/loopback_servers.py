"""Servers on loopback that say what they are told to, and remember what they were asked."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from podstatus.testing.servers.free_port import free_port

HOST = "127.0.0.1"


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


@asynccontextmanager
async def serving(serve: Serve, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Serve connections on a free port, which is yielded; open ones are cancelled at the end."""
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, HOST, 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class RawServer:
    """Answers each request with bytes; by default, it hangs up after that."""

    def __init__(self, answer: Callable[[str], bytes], *, hangs: bool = False) -> None:
        self._answer = answer
        self._hangs = hangs
        self.asked: list[str] = []
        """The requests, heads only."""
        self.port = 0
        self.open = 0

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.asked.append(head)
            writer.write(self._answer(head.split()[1]))
            await writer.drain()
            if self._hangs:
                await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            self.open -= 1
            writer.close()


@asynccontextmanager
async def raw_server(
    answer: Callable[[str], bytes] | bytes,
    *,
    hangs: bool = False,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[RawServer]:
    """A server, for a while."""
    said = (lambda _: answer) if isinstance(answer, bytes) else answer
    raw = RawServer(said, hangs=hangs)
    server = await asyncio.start_server(raw.serve, HOST, 0, ssl=tls)
    raw.port = server.sockets[0].getsockname()[1]
    try:
        yield raw
    finally:
        server.close()


def http(status: int, body: bytes = b"", *headers: str) -> bytes:
    """An answer as it goes over the wire."""
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def closed_port() -> int:
    """A port at which nobody listens."""
    return free_port()


@asynccontextmanager
async def deaf_port() -> AsyncIterator[int]:
    """A port that takes no more connections: those who wait to be accepted fill its queue."""
    with socket.socket() as deaf:
        deaf.bind((HOST, 0))
        deaf.listen(0)
        place = deaf.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        try:
            for other in waiting:
                other.setblocking(False)
                other.connect_ex(place)
            await asyncio.sleep(0)
            yield int(place[1])
        finally:
            for other in waiting:
                other.close()
