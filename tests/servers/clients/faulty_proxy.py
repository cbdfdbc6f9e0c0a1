"""Stands between a node and its API server, counts what is asked, and lets things go wrong.

Towards the node it speaks plain HTTP; what it passes on goes to the server over TLS. What it
counts is about single pods: lists and watches are the reflector's, and go through uncounted.
"""

import asyncio
import random
import re
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import Enum

import aiohttp
import msgspec
from aiohttp import web
from yarl import URL

from podstatus.testing.servers.access import ServerAccess
from tests.support.plain_access import PlainAccess

_POD = re.compile(r"/api/v1/namespaces/[^/]+/pods/([^/]+)(?:/status)?")
_PASSED_ON = ("Accept", "Authorization", "Content-Type", "User-Agent")


LATENCY = 0.01
"""Seconds at most, so that more happens to pods while their requests are under way."""


class Asked(msgspec.Struct, kw_only=True):
    """A request about one pod."""

    at: float
    method: str
    name: str
    code: int = 0
    """Of the answer, the server's or ours; 0 while there is none."""

    @property
    def failed(self) -> bool:
        """Whether the node had no answer, or a refusal."""
        return not 200 <= self.code < 300


class Refusal(msgspec.Struct, frozen=True):
    """An answer that is not the server's: nothing is passed on."""

    code: int
    retry_after: int | None = None


class Trouble(Enum):
    """What becomes of a connection."""

    CUT = "before the request is passed on"
    LOSE = "after the server has answered: nobody hears of it"
    DELAY = "at once, and the request is passed on when `release` is called"


Fault = Refusal | Trouble | None


class FaultyProxy:
    """Serves at `access` within `running`."""

    def __init__(self, server: ServerAccess, chance: random.Random) -> None:
        self._chance = chance
        self._server = server
        self._runner: web.ServerRunner | None = None
        self._session: aiohttp.ClientSession | None = None
        self._released = asyncio.Event()
        self.asked: list[Asked] = []
        self.most_under_way = 0
        """Requests about pods whose client waited for an answer at the same time."""
        self._under_way: dict[int, web.BaseRequest] = {}
        self.access = PlainAccess("http://nobody.invalid")
        self.fault: Callable[[Asked], Fault] = lambda _: None
        """What goes wrong with a request about a pod."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve."""
        tls = ssl.create_default_context(cafile=str(self._server.authority))
        connector = aiohttp.TCPConnector(limit=0, ssl=tls)
        self._runner = web.ServerRunner(
            web.Server(self._serve, access_log=None), handle_signals=False, shutdown_timeout=0.1
        )
        async with aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(),
            # Bodies go through as they are, so none may be compressed.
            skip_auto_headers=["Accept-Encoding"],
        ) as self._session:
            await self._runner.setup()
            await web.TCPSite(self._runner, "127.0.0.1", 0).start()
            port: int = self._runner.addresses[0][1]
            self.access = PlainAccess(f"http://127.0.0.1:{port}", self._server.token)
            try:
                yield
            finally:
                await self._runner.cleanup()

    @property
    def is_asked(self) -> bool:
        """Whether a request about a pod is under way."""
        return bool(self._under_way)

    def heal(self) -> None:
        """Let nothing go wrong any more."""
        self.fault = lambda _: None

    def cut(self) -> None:
        """End every connection of the node; what the server was asked already is done."""
        assert self._runner is not None
        assert self._runner.server is not None
        for connection in self._runner.server.connections:
            if connection.transport is not None:
                connection.transport.abort()

    def release(self) -> None:
        """Pass on what was delayed."""
        self._released.set()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        match = _POD.fullmatch(request.path)
        asked = Asked(at=time.monotonic(), method=request.method, name=match[1] if match else "")
        if not match:
            return await self._answer(request, asked, None)
        self.asked.append(asked)
        self._under_way[id(request)] = request
        waiting = sum(not _has_left(other) for other in self._under_way.values())
        self.most_under_way = max(self.most_under_way, waiting)
        try:
            await asyncio.sleep(self._chance.random() * LATENCY)
            if _has_left(request):
                return _hung_up(request)
            return await self._answer(request, asked, self.fault(asked))
        finally:
            del self._under_way[id(request)]

    async def _answer(
        self, request: web.BaseRequest, asked: Asked, fault: Fault
    ) -> web.StreamResponse:
        body = await request.read()
        if isinstance(fault, Refusal):
            asked.code = fault.code
            return _refusal(fault)
        if fault is Trouble.CUT:
            return _hung_up(request)
        if fault is Trouble.DELAY:
            _hung_up(request)
            await self._released.wait()
        try:
            return await self._pass_on(request, body, asked, fault)
        except aiohttp.ClientError:
            return _hung_up(request)

    async def _pass_on(
        self, request: web.BaseRequest, body: bytes, asked: Asked, fault: Fault
    ) -> web.StreamResponse:
        assert self._session is not None
        headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        url = URL(self._server.url + request.path_qs, encoded=True)
        async with self._session.request(
            request.method, url, data=body or None, headers=headers, allow_redirects=False
        ) as answer:
            if asked.name:
                whole = await answer.read()
                if fault is not None or _has_left(request):
                    return _hung_up(request)
                asked.code = answer.status
                return web.Response(
                    status=answer.status, body=whole, content_type=answer.content_type
                )
            return await _streamed(request, answer)


async def _streamed(request: web.BaseRequest, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status)
    response.content_type = answer.content_type
    await response.prepare(request)
    async for data in answer.content.iter_any():
        await response.write(data)
    await response.write_eof()
    return response


def _refusal(refusal: Refusal) -> web.Response:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": refusal.code}
    headers = {} if refusal.retry_after is None else {"Retry-After": str(refusal.retry_after)}
    return web.json_response(status, status=refusal.code, headers=headers)


def _has_left(request: web.BaseRequest) -> bool:
    return request.transport is None or request.transport.is_closing()


def _hung_up(request: web.BaseRequest) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
