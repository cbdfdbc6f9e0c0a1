"""The agent's HTTPS server: accept connections, authorize each request, dispatch it."""

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
"""Of the request line, as in Go: the query of an exec holds the command."""
_MAX_FIELD_BYTES = 66 * 2**10
"""Of a header: tokens of up to 64 KiB are reviewed."""
_MAX_HEADERS = 64
_MAX_LOGGED_PATH = 200
_CLOSE_SECONDS = 0.5
"""For requests in flight when the server stops."""
KEEP_ALIVE_SECONDS = 60.0
"""For a connection without a request."""
_LINGER_SECONDS = 2.0
"""For an unread request body: some clients read the response only after they have sent it."""


class NodeServer:
    """Serves the routes of `handlers` over TLS. For one event loop."""

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
        """`names` are accepted in the Host header, beside addresses and localhost."""
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
        """Start listening, and return the port. Raises OSError."""
        server = web.Server(
            self._serve,
            handler_cancellation=True,
            access_log=None,
            logger=http_logger(__name__),
            auto_decompress=False,
            max_line_size=_MAX_LINE_BYTES,
            max_field_size=_MAX_FIELD_BYTES,
            max_headers=_MAX_HEADERS,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
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
        runner, self._runner = self._runner, None
        if runner is None or runner.server is None or self._connections is None:
            return
        self._connections.close()
        await self._handlers.stop()
        await runner.cleanup()
        await self._connections.abort_all()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        if self._connections is None:
            raise ConnectionAbortedError  # the server was stopped meanwhile
        with self._connections.serving(request.protocol):
            return await self._respond(request, self._connections)

    async def _respond(
        self, request: web.BaseRequest, connections: AcceptLoop
    ) -> web.StreamResponse:
        try:
            return await self._authorize_and_handle(request, connections)
        except HttpError as error:
            return _error_response(error, as_json=_is_own_api(request))
        except Exception as error:
            path = request.path[:_MAX_LOGGED_PATH]
            is_disconnected = request.transport is None or request.transport.is_closing()
            if isinstance(error, ConnectionError) and is_disconnected:
                logger.debug("client disconnected: path=%s error=%r", path, error)
            else:
                logger.exception("request failed: method=%s path=%s", request.method, path)
            return _error_response(
                HttpError(
                    HTTPStatus.INTERNAL_SERVER_ERROR,
                    "Internal error occurred; see the agent's log",
                ),
                as_json=_is_own_api(request),
            )

    async def _authorize_and_handle(
        self, request: web.BaseRequest, connections: AcceptLoop
    ) -> web.StreamResponse:
        check_origin(request.headers, self._names)
        raw_path = request.rel_url.raw_path
        match = match_route(raw_path, self._routes)
        # Authorize the route that is served, however its path is encoded: `/%6cogs/`.
        attributes = _request_attributes(
            request, raw_path if match is None else match.route.pattern
        )
        user = ""
        if match is None or not _allows_anonymous(request, match.route):
            user = await self._authorizer.authorize(attributes)
        elif self._authorizer.has_agent_token(attributes):
            user = AGENT_USER
        elif match.route.kind is RouteKind.WATCH:
            # Anonymous watches are allowed, but identified users have places of their own.
            user = await self._authorizer.identify(attributes)
        if user and not connections.mark_authenticated(request.protocol):
            raise _too_many_connections()
        if match is None:
            raise not_found(_not_found_text(self._routes))
        _check_method(request.method, match)
        return await self._handlers.handle(request, match, user)


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
    """Whether the route needs no credentials; a local one only if both ends are on loopback."""
    if route.allows_anonymous or not route.allows_anonymous_local or request.transport is None:
        return route.allows_anonymous
    ends = map(request.transport.get_extra_info, ("sockname", "peername"))
    return all(map(is_loopback, ends))


def _is_own_api(request: web.BaseRequest) -> bool:
    """Whether the request is for the query API, which returns errors as JSON."""
    return request.rel_url.raw_path.startswith(OWN_API_PREFIXES)


def _check_method(method: str, match: RouteMatch) -> None:
    if method not in match.route.methods:
        allowed = ", ".join(match.route.methods)
        text = f"405: Method Not Allowed; {match.route.pattern} allows {allowed}"
        raise HttpError(HTTPStatus.METHOD_NOT_ALLOWED, text, Allow=allowed)


def _too_many_connections() -> HttpError:
    text = "too many connections are in use; try again later"
    return HttpError(HTTPStatus.SERVICE_UNAVAILABLE, text, **{"Retry-After": "1"})


def _not_found_text(routes: Iterable[Route]) -> str:
    patterns = "\n".join(f"  {route.pattern}" for route in routes)
    return f"404 page not found; the paths are\n{patterns}"


def _error_response(error: HttpError, *, as_json: bool) -> web.Response:
    text = error.text.encode(errors="backslashreplace").decode()
    body = error_document(error.code, text.strip()) if as_json else text.rstrip("\n") + "\n"
    return web.Response(
        status=error.code,
        text=body,
        content_type="application/json" if as_json else "text/plain",
        headers=SECURITY_HEADERS | error.headers,
    )
