"""The agent's HTTPS port on its socket: who may ask, how many at once, and the end of it."""

import logging
import ssl
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from aiohttp import web

from podstatus.base.net.accept_loop import AcceptLoop, descriptor_limit
from podstatus.web.auth.authorizer import OWNER, Asked, Gate, bearer_token, certificate_user
from podstatus.web.auth.origin import check_site, is_loopback
from podstatus.web.connection_limits import NODE_PORT_LIMITS, http_logger
from podstatus.web.errors import SAFE, Refusal, not_found, refusal_document
from podstatus.web.handlers import Answers
from podstatus.web.routes import OWN, About, Found, Route, find_route

logger = logging.getLogger(__name__)

_MOST_LINE = 2**20
"""Of a request's first line, as in Go: commands travel in there."""
_MOST_FIELD = 66 * 2**10
"""Of a header: tokens of 64 KiB are looked at."""
_MOST_HEADERS = 64
_MAX_LOGGED_PATH = 200
_CLOSE_SECONDS = 0.5
"""For those who are being answered when the server stops."""
_KEEP_SECONDS = 60.0
"""For a connection that nobody asks anything on."""
_LINGER_SECONDS = 2.0
"""For a body that nobody wants: a client may not look for an answer before it has sent it."""


class NodeServer:
    """Listens, and answers those who may ask."""

    def __init__(
        self,
        answers: Answers,
        gate: Gate,
        *,
        ssl_context: ssl.SSLContext,
        host: str,
        port: int,
        names: Iterable[str] = (),
    ) -> None:
        """`names` are those that clients may call it by, beside its addresses and localhost."""
        self._answers = answers
        self._names = tuple(names)
        self._routes = answers.routes
        self._gate = gate
        self._ssl_context = ssl_context
        self._host = host
        self._port = port
        self._runner: web.ServerRunner | None = None
        self._connections: AcceptLoop | None = None

    async def start(self) -> int:
        """Begin to listen; the port. Raises OSError."""
        server = web.Server(
            self._serve,
            handler_cancellation=True,
            access_log=None,
            logger=http_logger(__name__),
            auto_decompress=False,
            max_line_size=_MOST_LINE,
            max_field_size=_MOST_FIELD,
            max_headers=_MOST_HEADERS,
            keepalive_timeout=_KEEP_SECONDS,
            lingering_time=_LINGER_SECONDS,
        )
        runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=_CLOSE_SECONDS)
        await runner.setup()
        connections = AcceptLoop(
            server, NODE_PORT_LIMITS.scaled(descriptor_limit()), ssl_context=self._ssl_context
        )
        try:
            port = await connections.start(self._host, self._port)
        except BaseException:
            await runner.cleanup()
            raise
        self._runner, self._connections = runner, connections
        return port

    async def stop(self) -> None:
        """End all streams and connections."""
        runner, self._runner = self._runner, None
        if runner is None or runner.server is None or self._connections is None:
            return
        self._connections.close()
        await self._answers.stop()
        await runner.cleanup()
        await self._connections.abort_all()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        if self._connections is None:
            raise ConnectionAbortedError  # it has stopped meanwhile
        with self._connections.serving(request.protocol):
            return await self._try_to_answer(request, self._connections)

    async def _try_to_answer(
        self, request: web.BaseRequest, connections: AcceptLoop
    ) -> web.StreamResponse:
        try:
            return await self._answer(request, connections)
        except Refusal as refusal:
            return _refused(refusal, as_json=_is_own(request))
        except Exception as error:
            path = request.path[:_MAX_LOGGED_PATH]
            if isinstance(error, ConnectionError) and _has_gone(request):
                logger.debug("client went away: path=%s error=%r", path, error)
            else:
                logger.exception("request failed: method=%s path=%s", request.method, path)
            return _refused(
                Refusal(
                    HTTPStatus.INTERNAL_SERVER_ERROR,
                    "Internal error occurred; the agent's log says more",
                ),
                as_json=_is_own(request),
            )

    async def _answer(
        self, request: web.BaseRequest, connections: AcceptLoop
    ) -> web.StreamResponse:
        check_site(request.headers, self._names)
        raw_path = request.rel_url.raw_path
        found = find_route(raw_path, self._routes)
        # What is asked for is what would be answered, however it was written: `/%6cogs/`.
        asked = _asked(request, raw_path if found is None else found.route.pattern)
        who = ""
        if found is None or not _is_open(request, found.route):
            who = await self._gate.check(asked)
        elif self._gate.is_owner(asked):
            who = OWNER
        elif found.route.about is About.WATCH:
            # It is open, but there are places for those who say who they are.
            who = await self._gate.who(asked)
        if who and not connections.mark_authenticated(request.protocol):
            raise _too_many_connections()
        if found is None:
            raise not_found(_what_there_is(self._routes))
        _check_method(request.method, found)
        return await self._answers.answer(request, found, who)


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


def _is_open(request: web.BaseRequest, route: Route) -> bool:
    """Whether nobody has to say who he is: for what is open here, both ends have to be here."""
    if route.is_open_everywhere or not route.is_open or request.transport is None:
        return route.is_open_everywhere
    ends = map(request.transport.get_extra_info, ("sockname", "peername"))
    return all(map(is_loopback, ends))


def _has_gone(request: web.BaseRequest) -> bool:
    """Whether nobody is there any more to be answered."""
    return request.transport is None or request.transport.is_closing()


def _is_own(request: web.BaseRequest) -> bool:
    """Whether it is for our own API, which answers in JSON whatever it answers."""
    return request.rel_url.raw_path.startswith(OWN)


def _check_method(method: str, found: Found) -> None:
    if method not in found.route.methods:
        allowed = ", ".join(found.route.methods)
        text = f"405: Method Not Allowed; {found.route.pattern} takes {allowed}"
        raise Refusal(HTTPStatus.METHOD_NOT_ALLOWED, text, Allow=allowed)


def _too_many_connections() -> Refusal:
    text = "too many connections are being answered, and no more are allowed"
    return Refusal(HTTPStatus.SERVICE_UNAVAILABLE, text, **{"Retry-After": "1"})


def _what_there_is(routes: Iterable[Route]) -> str:
    there = "\n".join(f"  {route.pattern}" for route in routes)
    return f"404 page not found; there is\n{there}"


def _refused(refusal: Refusal, *, as_json: bool) -> web.Response:
    text = refusal.text.encode(errors="backslashreplace").decode()
    body = refusal_document(refusal.code, text.strip()) if as_json else text.rstrip("\n") + "\n"
    return web.Response(
        status=refusal.code,
        text=body,
        content_type="application/json" if as_json else "text/plain",
        headers=SAFE | refusal.headers,
    )
