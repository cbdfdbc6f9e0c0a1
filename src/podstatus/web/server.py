"""The agent's HTTPS port on its socket: who may ask, how many at once, and the end of it."""

import logging
import ssl
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from aiohttp import web

from podstatus.base.net.accept_loop import AcceptLoop, descriptor_limit
from podstatus.web.auth.authorizer import (
    AGENT_USER,
    Authorizer,
    RequestAttributes,
    bearer_token,
    certificate_user,
)
from podstatus.web.auth.origin import check_origin, is_loopback
from podstatus.web.connection_limits import NODE_PORT_LIMITS, http_logger
from podstatus.web.errors import SECURITY_HEADERS, HttpError, error_document, not_found
from podstatus.web.handlers import Handlers
from podstatus.web.routes import OWN_API_PREFIXES, Route, RouteKind, RouteMatch, match_route

logger = logging.getLogger(__name__)

_MAX_LINE_BYTES = 2**20
"""Of a request's first line, as in Go: commands travel in there."""
_MAX_FIELD_BYTES = 66 * 2**10
"""Of a header: tokens of 64 KiB are looked at."""
_MAX_HEADERS = 64
_MAX_LOGGED_PATH = 200
_CLOSE_SECONDS = 0.5
"""For those who are being answered when the server stops."""
_KEEP_ALIVE_SECONDS = 60.0
"""For a connection that nobody asks anything on."""
_LINGER_SECONDS = 2.0
"""For a body that nobody wants: a client may not look for an answer before it has sent it."""


class NodeServer:
    """Listens, and answers those who may ask."""

    def __init__(
        self,
        handlers: Handlers,
        authorizer: Authorizer,
        *,
        ssl_context: ssl.SSLContext,
        host: str,
        port: int,
        names: Iterable[str] = (),
    ) -> None:
        """`names` are those that clients may call it by, beside its addresses and localhost."""
        self._handlers = handlers
        self._names = tuple(names)
        self._routes = handlers.routes
        self._authorizer = authorizer
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
            max_line_size=_MAX_LINE_BYTES,
            max_field_size=_MAX_FIELD_BYTES,
            max_headers=_MAX_HEADERS,
            keepalive_timeout=_KEEP_ALIVE_SECONDS,
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
        await self._handlers.stop()
        await runner.cleanup()
        await self._connections.abort_all()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        if self._connections is None:
            raise ConnectionAbortedError  # it has stopped meanwhile
        with self._connections.serving(request.protocol):
            return await self._respond(request, self._connections)

    async def _respond(
        self, request: web.BaseRequest, connections: AcceptLoop
    ) -> web.StreamResponse:
        try:
            return await self._authorize_and_handle(request, connections)
        except HttpError as refusal:
            return _error_response(refusal, as_json=_is_own_api(request))
        except Exception as error:
            path = request.path[:_MAX_LOGGED_PATH]
            if isinstance(error, ConnectionError) and _is_disconnected(request):
                logger.debug("client went away: path=%s error=%r", path, error)
            else:
                logger.exception("request failed: method=%s path=%s", request.method, path)
            return _error_response(
                HttpError(
                    HTTPStatus.INTERNAL_SERVER_ERROR,
                    "Internal error occurred; the agent's log says more",
                ),
                as_json=_is_own_api(request),
            )

    async def _authorize_and_handle(
        self, request: web.BaseRequest, connections: AcceptLoop
    ) -> web.StreamResponse:
        check_origin(request.headers, self._names)
        raw_path = request.rel_url.raw_path
        found = match_route(raw_path, self._routes)
        # What is asked for is what would be answered, however it was written: `/%6cogs/`.
        asked = _request_attributes(request, raw_path if found is None else found.route.pattern)
        who = ""
        if found is None or not _allows_anonymous(request, found.route):
            who = await self._authorizer.authorize(asked)
        elif self._authorizer.has_agent_token(asked):
            who = AGENT_USER
        elif found.route.kind is RouteKind.WATCH:
            # It is open, but there are places for those who say who they are.
            who = await self._authorizer.identify(asked)
        if who and not connections.mark_authenticated(request.protocol):
            raise _too_many_connections()
        if found is None:
            raise not_found(_not_found_text(self._routes))
        _check_method(request.method, found)
        return await self._handlers.handle(request, found, who)


def _request_attributes(request: web.BaseRequest, path: str) -> RequestAttributes:
    transport = request.transport
    certificate: dict[str, Any] | None = None
    if transport is not None:
        certificate = transport.get_extra_info("peercert")
    return RequestAttributes(
        method=request.method,
        path=path,
        token=bearer_token(request.headers),
        certificate=certificate_user(certificate),
    )


def _allows_anonymous(request: web.BaseRequest, route: Route) -> bool:
    """Whether nobody has to say who he is: for what is open here, both ends have to be here."""
    if route.allows_anonymous or not route.allows_anonymous_local or request.transport is None:
        return route.allows_anonymous
    ends = map(request.transport.get_extra_info, ("sockname", "peername"))
    return all(map(is_loopback, ends))


def _is_disconnected(request: web.BaseRequest) -> bool:
    """Whether nobody is there any more to be answered."""
    return request.transport is None or request.transport.is_closing()


def _is_own_api(request: web.BaseRequest) -> bool:
    """Whether it is for our own API, which answers in JSON whatever it answers."""
    return request.rel_url.raw_path.startswith(OWN_API_PREFIXES)


def _check_method(method: str, found: RouteMatch) -> None:
    if method not in found.route.methods:
        allowed = ", ".join(found.route.methods)
        text = f"405: Method Not Allowed; {found.route.pattern} takes {allowed}"
        raise HttpError(HTTPStatus.METHOD_NOT_ALLOWED, text, Allow=allowed)


def _too_many_connections() -> HttpError:
    text = "too many connections are being answered, and no more are allowed"
    return HttpError(HTTPStatus.SERVICE_UNAVAILABLE, text, **{"Retry-After": "1"})


def _not_found_text(routes: Iterable[Route]) -> str:
    there = "\n".join(f"  {route.pattern}" for route in routes)
    return f"404 page not found; there is\n{there}"


def _error_response(error: HttpError, *, as_json: bool) -> web.Response:
    text = error.text.encode(errors="backslashreplace").decode()
    body = error_document(error.code, text.strip()) if as_json else text.rstrip("\n") + "\n"
    return web.Response(
        status=error.code,
        text=body,
        content_type="application/json" if as_json else "text/plain",
        headers=SECURITY_HEADERS | error.headers,
    )
