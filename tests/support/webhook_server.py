"""A server on loopback that notes what is posted to it and answers as it is told to."""

import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web

Answer = Callable[[web.Request], Coroutine[Any, Any, web.StreamResponse]]


class Posted(msgspec.Struct, frozen=True):
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class WebServer:
    def __init__(self) -> None:
        self.posts: list[Posted] = []
        self.answers: list[web.Response | Answer] = []
        """To the next posts; 200 to all after them."""
        self.url = ""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.posts.append(Posted(request.path, headers, await request.read()))
        if not self.answers:
            return web.Response()
        answer = self.answers.pop(0)
        if isinstance(answer, web.Response):
            return answer
        return await answer(request)  # type: ignore[arg-type]


@asynccontextmanager
async def web_server(
    tls: ssl.SSLContext | None = None, *, port: int = 0
) -> AsyncIterator[WebServer]:
    made = WebServer()
    runner = web.ServerRunner(web.Server(made.handle), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls)
    await site.start()
    host, port = runner.addresses[0][:2]
    made.url = f"{'https' if tls else 'http'}://{host}:{port}"
    try:
        yield made
    finally:
        await runner.cleanup()
