"""The agent's HTTPS port on its socket: who may ask, how many at once, and the end of it."""

import asyncio
import logging
import ssl
from http import HTTPStatus
from typing import Any

from aiohttp import web

from podstatus.web.access import Asked, Gate, bearer_token, certificate_user
from podstatus.web.answers import Answers
from podstatus.web.connections import BoundedServer
from podstatus.web.refusals import Refusal, not_found
from podstatus.web.routes import ROUTES, Found, find_route

logger = logging.getLogger(__name__)


def _without_exception(record: logging.LogRecord) -> bool:
    """Keep a record, but not what could not be parsed: there may be a token in it."""
    record.exc_info = None
    return True


_http_logger = logging.getLogger(f"{__name__}.http")
_http_logger.addFilter(_without_exception)

_MOST_HEAD = 2**20
"""Of a request's first line and its headers, as in Go: commands travel in there."""
_CLOSE_SECONDS = 0.5
"""For those who are being answered when the server stops."""
_KEEP_SECONDS = 60.0
"""For a connection that nobody asks anything on."""


class NodeServer:
    """Listens, and answers those who may ask."""

    def __init__(
        self, answers: Answers, gate: Gate, *, ssl_context: ssl.SSLContext, host: str, port: int
    ) -> None:
        self._answers = answers
        self._gate = gate
        self._ssl_context = ssl_context
        self._host = host
        self._port = port
        self._runner: web.ServerRunner | None = None
        self._connections: BoundedServer | None = None

    async def start(self) -> int:
        """Begin to listen; the port. Raises OSError."""
        server = self._connections = BoundedServer(
            self._serve,
            handler_cancellation=True,
            access_log=None,
            logger=_http_logger,
            auto_decompress=False,
            max_line_size=_MOST_HEAD,
            max_field_size=_MOST_HEAD,
            keepalive_timeout=_KEEP_SECONDS,
        )
        runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=_CLOSE_SECONDS)
        await runner.setup()
        try:
            site = web.TCPSite(runner, self._host, self._port, ssl_context=self._ssl_context)
            await site.start()
        except BaseException:
            await runner.cleanup()
            raise
        self._runner = runner
        port: int = runner.addresses[0][1]
        return port

    async def stop(self) -> None:
        """End all streams and connections."""
        runner, self._runner = self._runner, None
        if runner is None or runner.server is None:
            return
        await self._answers.stop()
        transports = [handler.transport for handler in runner.server.connections]
        await runner.cleanup()
        for transport in transports:
            # TLS would wait half a minute for clients that do not say goodbye.
            if transport is not None:
                transport.abort()
        # What was aborted is closed in the next turns of the loop.
        for _ in range(3):
            await asyncio.sleep(0)

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        if self._connections is not None:
            self._connections.has_asked(request.protocol)
        try:
            return await self._answer(request)
        except Refusal as refusal:
            return _refused(refusal)
        except Exception:
            logger.exception("request failed: method=%s path=%s", request.method, request.path)
            return _refused(
                Refusal(
                    HTTPStatus.INTERNAL_SERVER_ERROR,
                    "Internal error occurred; the agent's log says more",
                )
            )

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        _check_site(request)
        raw_path = request.rel_url.raw_path
        found = find_route(raw_path)
        if found is None or not found.route.is_open:
            # What is asked for is what would be answered, however it was written: `/%6cogs/`.
            path = raw_path if found is None else found.route.pattern
            await self._gate.check(_asked(request, path))
        if found is None:
            raise not_found(_what_there_is())
        _check_method(request.method, found)
        return await self._answers.answer(request, found)


def _asked(request: web.BaseRequest, path: str) -> Asked:
    transport = request.transport
    certificate: dict[str, Any] | None = None
    if transport is not None:
        certificate = transport.get_extra_info("peercert")
    return Asked(
        method=request.method,
        path=path,
        token=bearer_token(request.headers),
        certificate=certificate_user(certificate),
    )


def _check_site(request: web.BaseRequest) -> None:
    """Refuse what pages of others make a browser ask, which may have a certificate of its user."""
    if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
        raise Refusal(HTTPStatus.FORBIDDEN, "requests of other sites' pages are refused")


def _check_method(method: str, found: Found) -> None:
    if method not in found.route.methods:
        allowed = ", ".join(found.route.methods)
        text = f"405: Method Not Allowed; {found.route.pattern} takes {allowed}"
        raise Refusal(HTTPStatus.METHOD_NOT_ALLOWED, text, Allow=allowed)


def _what_there_is() -> str:
    there = "\n".join(f"  {route.pattern}" for route in ROUTES)
    return f"404 page not found; there is\n{there}"


def _refused(refusal: Refusal) -> web.Response:
    headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
    text = refusal.text.encode(errors="backslashreplace").decode()
    return web.Response(
        status=refusal.code,
        text=text if text.endswith("\n") else f"{text}\n",
        content_type="text/plain",
        headers=headers | refusal.headers,
    )
