"""A server before an API server that answers truly, until it is told to be hostile."""

import asyncio
import contextlib
import json
import ssl
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import aiohttp

from podstatus.testing.servers.access import ServerAccess
from tests.support.loopback_servers import serving
from tests.support.processes.mutations import LINES, RAW, mutated, whole

_HOP = ("host", "connection", "accept-encoding", "content-length", "authorization")


class HostileProxy:
    """Passes requests on; while it is `hostile`, a part of the answers is changed."""

    def __init__(self, server: ServerAccess, seed: int, share: float = 0.3) -> None:
        self._server = server
        self._random = Random(seed)
        self._share = share
        self.hostile = False
        self.url = ""
        self.done: Counter[str] = Counter()
        """What was done to answers, by its name."""
        self.requests: Counter[str] = Counter()

    async def serve(self, started: threading.Event, stopped: asyncio.Event) -> None:
        tls = ssl.create_default_context(cafile=str(self._server.authority))
        connector = aiohttp.TCPConnector(ssl=tls, limit=0)
        async with (
            aiohttp.ClientSession(connector=connector) as self._session,
            serving(self._converse) as port,
        ):
            self.url = f"http://127.0.0.1:{port}"
            started.set()
            await stopped.wait()
        # aiohttp does not wait for the end of its connections with TLS.
        await asyncio.sleep(0.3)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, aiohttp.ClientError):
                while await self._answer(reader, writer):
                    pass
            writer.close()
            await writer.wait_closed()
        except OSError:
            pass  # it was closed by the other side
        finally:
            writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        line, *lines = head.strip().split("\r\n")
        method, path, _ = line.split(" ")
        headers = {k.strip().lower(): v.strip() for k, _, v in (it.partition(":") for it in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        sent = {name: value for name, value in headers.items() if name not in _HOP}
        sent["authorization"] = f"Bearer {self._server.token}"
        self.requests[f"{method} {path.partition('?')[0]}"] += 1
        async with self._session.request(
            method, self._server.url + path, data=body, headers=sent
        ) as response:
            if "watch=1" in path and response.status == 200:
                return await self._pass_watch(response, writer)
            return await self._pass(response, writer)

    async def _pass(self, response: aiohttp.ClientResponse, writer: asyncio.StreamWriter) -> bool:
        body = await response.read()
        if self._is_hostile():
            await self._say(writer, self._hostile_answer(body))
            return False
        head = (
            f"HTTP/1.1 {response.status} {response.reason}\r\n"
            f"Content-Type: {response.headers.get('Content-Type', '')}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        await self._say(writer, head.encode() + body)
        return True

    def _is_hostile(self) -> bool:
        return self.hostile and self._random.random() < self._share

    def _hostile_answer(self, body: bytes) -> bytes:
        if self._random.random() < 0.5:
            name = self._random.choice(list(RAW))
            self.done[name] += 1
            return RAW[name](body)
        self.done["a field"] += 1
        with contextlib.suppress(ValueError):
            body = mutated(json.loads(body), self._random)
        return whole(body)

    async def _pass_watch(
        self, response: aiohttp.ClientResponse, writer: asyncio.StreamWriter
    ) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
        writer.write(b"Transfer-Encoding: chunked\r\n\r\n")
        rest = b""
        async for part in response.content.iter_any():
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                said = line + b"\n"
                if self._is_hostile():
                    said = self._hostile_line(said)
                await self._say_chunk(writer, said)
        await self._say(writer, b"0\r\n\r\n")
        return True

    def _hostile_line(self, line: bytes) -> bytes:
        if self._random.random() < 0.5:
            name = self._random.choice(list(LINES))
            self.done[f"event: {name}"] += 1
            return LINES[name](line)
        self.done["event: a field"] += 1
        event = json.loads(line)
        return mutated(event, self._random) + b"\n"

    async def _say_chunk(self, writer: asyncio.StreamWriter, said: bytes) -> None:
        if self.hostile and len(said) < 2000 and self._random.random() < self._share:
            self.done["event: byte by byte"] += 1
            for at in range(len(said)):
                await self._say(writer, b"1\r\n" + said[at : at + 1] + b"\r\n")
                if not at % 100:
                    await asyncio.sleep(0)
            return
        await self._say(writer, b"%x\r\n%b\r\n" % (len(said), said))

    async def _say(self, writer: asyncio.StreamWriter, said: bytes) -> None:
        writer.write(said)
        await writer.drain()


@contextmanager
def hostile_proxy(server: ServerAccess, seed: int, share: float = 0.3) -> Iterator[HostileProxy]:
    """The proxy, serving in a thread of its own."""
    proxy = HostileProxy(server, seed, share)
    started, loops = threading.Event(), []

    def run() -> None:
        async def serve() -> None:
            stopped = asyncio.Event()
            loops.append((asyncio.get_running_loop(), stopped))
            await proxy.serve(started, stopped)

        asyncio.run(serve())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    started.wait(60)
    try:
        yield proxy
    finally:
        loop, stopped = loops[0]
        loop.call_soon_threadsafe(stopped.set)
        thread.join(60)
