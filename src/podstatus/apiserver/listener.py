"""The listening socket: TLS, authentication, and limits on connections, bodies and time.

The body limit is upstream's: 3 MiB (MaxRequestBodyBytes).
"""

import asyncio
import logging
import ssl
from asyncio.trsock import TransportSocket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from aiohttp import StreamReader, web

from podstatus.apiserver.discovery.endpoints import UNAUTHENTICATED_PATHS
from podstatus.apiserver.http.errors import StatusError, bad_request
from podstatus.apiserver.http.messages import (
    ConnectionDropped,
    HttpRequest,
    Response,
    StreamResponse,
    WebSocketProxy,
    error_response,
    no_op,
)
from podstatus.apiserver.kubelet.websocket_relay import serve_websocket
from podstatus.apiserver.request.request_info import request_info
from podstatus.apiserver.service_accounts.access import ClientIdentity, authorize
from podstatus.apiserver.service_accounts.authenticator import Authenticator
from podstatus.base.log_rate import RateLimitFilter
from podstatus.base.net.accept_loop import AcceptLoop, descriptor_limit
from podstatus.base.net.connection_eviction import StageLimits
from podstatus.base.net.sockets import shutdown_sockets, transport_socket
from podstatus.base.system_clock import SystemClock

logger = logging.getLogger(__name__)

_http_logger = logging.getLogger(f"{__name__}.http")
_http_logger.addFilter(RateLimitFilter(SystemClock()))

LIMITS = StageLimits(silent=160, handshake=96, head=64, unauthenticated=32, authenticated=352)
"""Connections per stage for 1024 file descriptors; an eighth is left for connections to nodes."""
_MAX_LOGGED_PATH = 200
MAX_REQUEST_BODY_BYTES = 3 * 2**20
CLOSE_SECONDS = 2.0
"""How long open connections may take to finish when the server stops."""
BODY_SECONDS = 30.0
"""How long a request body may take; a client on loopback needs milliseconds."""
KEEP_ALIVE_SECONDS = 90.0
"""Timeout of an idle connection, as in kube-apiserver."""
_LINGER_SECONDS = 2.0
"""How long to drain an unread body: a client may not read the response before it has sent all."""

Handler = Callable[
    [HttpRequest], Awaitable[Response | StreamResponse | WebSocketProxy | ConnectionDropped]
]


class Listener:
    """Accepts connections and passes authenticated requests to `handle`."""

    def __init__(
        self,
        handle: Handler,
        *,
        authenticator: Authenticator,
        ssl_context: ssl.SSLContext | None,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self._handle = handle
        self._authenticator = authenticator
        self._ssl_context = ssl_context
        self._host = host
        self._port = port
        self._hosts = frozenset({"localhost", "127.0.0.1", "::1", host})
        self._runner: web.ServerRunner | None = None
        self._connections: AcceptLoop | None = None
        self._websockets: WeakKeyDictionary[asyncio.Transport, TransportSocket] = (
            WeakKeyDictionary()
        )
        """Sockets of WebSockets: aiohttp drops its reference before TLS has shut down."""

    async def start(self) -> int:
        """Start to listen; return the port."""
        # Bodies are passed on compressed: upstream decompresses none, and a small one could become
        # huge.
        server = web.Server(
            self._serve,
            access_log=None,
            logger=_http_logger,
            auto_decompress=False,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            lingering_time=_LINGER_SECONDS,
        )
        self._runner = web.ServerRunner(
            server, handle_signals=False, shutdown_timeout=CLOSE_SECONDS
        )
        await self._runner.setup()
        self._connections = AcceptLoop(
            server, LIMITS.scaled(descriptor_limit()), ssl_context=self._ssl_context
        )
        return await self._connections.start(self._host, self._port)

    async def stop(self) -> None:
        """Stop accepting, then close all connections."""
        if self._runner is None or self._connections is None:
            return
        self._connections.close()
        await shutdown_sockets(self._websockets.values())
        await self._runner.cleanup()
        await self._connections.abort_all()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        if self._connections is None:
            raise ConnectionAbortedError  # stopped in the meantime
        with self._connections.serving(request.protocol):
            return await self._respond(request, self._connections)

    async def _respond(
        self, request: web.BaseRequest, connections: AcceptLoop
    ) -> web.StreamResponse:
        try:
            user = self._check_client(request.headers, request.path)
            if user is not None:
                _admit_connection(request, connections)
            http_request = await _read_request(request)
            if user is not None:
                authorize(user, request_info(http_request))
            response = await self._handle(http_request)
        except StatusError as problem:
            response = error_response(problem)
        except Exception:
            path = request.path[:_MAX_LOGGED_PATH]
            logger.exception("request failed: method=%s path=%s", request.method, path)
            response = error_response(StatusError(500, "InternalError", "Internal error occurred"))
        if isinstance(response, StreamResponse):
            return await _send_stream(request, response)
        if isinstance(response, WebSocketProxy):
            return await self._serve_websocket(request, response)
        if isinstance(response, ConnectionDropped):
            return _abort(request)
        return web.Response(
            status=response.code,
            body=response.body,
            content_type=response.content_type,
            headers=response.headers,
        )

    async def _serve_websocket(
        self, request: web.BaseRequest, tunnel: WebSocketProxy
    ) -> web.StreamResponse:
        transport = request.transport
        if transport is not None and (sock := transport_socket(transport)) is not None:
            self._websockets[transport] = sock
        return await serve_websocket(request, tunnel)

    def _check_client(self, headers: Mapping[str, str], path: str) -> ClientIdentity | None:
        """Return the client; None for an unauthenticated one.

        Raises StatusError: 401 if the path needs a token, 403 for a foreign Host header or a
        request from a web page of another site.
        """
        host = headers.get("Host", "")
        if _host_name(host) not in self._hosts:
            raise StatusError(403, "Forbidden", f"this server does not serve host {host[:80]!a}")
        site = headers.get("Sec-Fetch-Site", "none")
        if site not in ("none", "same-origin") or headers.get("Origin") is not None:
            raise StatusError(403, "Forbidden", "cross-site requests are not allowed")
        user = self._authenticator.authenticate(_bearer_token(headers))
        if path not in UNAUTHENTICATED_PATHS and user is None:
            raise StatusError(401, "Unauthorized", "Unauthorized")
        return user


def _host_name(host: str) -> str | None:
    """Return the host without its port; None if malformed."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _bearer_token(headers: Mapping[str, str]) -> bytes:
    """Return the bearer token, or empty bytes; a header may hold any bytes."""
    scheme, _, token = headers.get("Authorization", "").strip().partition(" ")
    return token.strip().encode(errors="surrogateescape") if scheme.lower() == "bearer" else b""


async def _read_request(request: web.BaseRequest) -> HttpRequest:
    if (request.content_length or 0) > MAX_REQUEST_BODY_BYTES:
        raise _request_too_large()
    # Most bodies arrive together with the head, so there is nothing to wait for.
    content = request.content
    body = content.read_nowait() if content.is_eof() else await _read_body(content)
    if len(body) > MAX_REQUEST_BODY_BYTES:
        raise _request_too_large()
    return HttpRequest(
        method=request.method,
        path=request.rel_url.raw_path,
        query=_query(request),
        accept=request.headers.get("Accept", ""),
        content_type=request.headers.get("Content-Type", ""),
        user_agent=request.headers.get("User-Agent", ""),
        body=body,
        abort=request.transport.abort if request.transport is not None else no_op,
        is_disconnected=lambda: request.transport is None or request.transport.is_closing(),
        raw_query=request.rel_url.raw_query_string,
        upgrade=request.headers.get("Upgrade", ""),
        protocols=_protocols(request.headers),
    )


def _protocols(headers: Mapping[str, str]) -> tuple[str, ...]:
    offered = headers.get("Sec-WebSocket-Protocol")
    return tuple(word.strip() for word in offered.split(",")) if offered else ()


def _query(request: web.BaseRequest) -> dict[str, str]:
    if not request.rel_url.raw_query_string:
        return {}
    return {key: request.query[key] for key in request.query}


async def _read_body(content: StreamReader) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in content.iter_any():
                body += chunk
                if len(body) > MAX_REQUEST_BODY_BYTES:
                    raise _request_too_large()
    except TimeoutError:
        raise StatusError(408, "Timeout", f"no complete body within {BODY_SECONDS:.0f} s") from None
    except web.RequestPayloadError as error:
        raise bad_request(f"cannot read the request body: {error}") from error
    return bytes(body)


def _admit_connection(request: web.BaseRequest, connections: AcceptLoop) -> None:
    """Count the connection as authenticated. Raises StatusError (429) at the limit."""
    if not connections.mark_authenticated(request.protocol):
        message = "too many open connections; close some, or try again later"
        raise StatusError(429, "TooManyRequests", message)


def _request_too_large() -> StatusError:
    return StatusError(
        413,
        "RequestEntityTooLarge",
        f"Request entity is too large: limit is {MAX_REQUEST_BODY_BYTES}",
    )


def _abort(request: web.BaseRequest) -> web.StreamResponse:
    """Close the connection without a response; the one returned to aiohttp is never sent."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


async def _send_stream(request: web.BaseRequest, stream: StreamResponse) -> web.StreamResponse:
    response = web.StreamResponse(status=stream.code, headers={"Content-Type": stream.content_type})
    response.enable_chunked_encoding()
    try:
        await response.prepare(request)
        async with aclosing(stream.lines) as lines:
            async for line in lines:
                await response.write(line)
        await response.write_eof()
    except ConnectionError:
        logger.debug("watch client disconnected: path=%s", request.path)
    finally:
        stream.close()
    return response
