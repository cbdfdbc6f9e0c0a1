"""Send requests over HTTP: connections, credentials, and the translation of errors."""

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import lru_cache

import aiohttp
import msgspec
from yarl import URL

from podstatus.client.auth.config import ClientConfig, Credentials
from podstatus.client.config_errors import WatchIdleError
from podstatus.client.rest.redaction import authorization_secrets, redact_secrets
from podstatus.client.rest.request import JSON, RestRequest
from podstatus.client.rest.resolver import Resolver
from podstatus.client.rest.response_body import is_success, read_body
from podstatus.client.rest.server_health import RequestMetrics, ServerHealth, server_host
from podstatus.client.rest.status_error import read_status, status_error
from podstatus.client.rest.transport_error import not_an_api_server, transport_error
from podstatus.kube.api_errors import UnavailableError

_KEEP_ALIVE_SECONDS = 60.0
"""Idle connections are kept this long: longer than the 10 s between two full syncs, and shorter
than the 90 s after which an API server closes them."""

_MAX_CACHED_URLS = 1024
"""Parsed URLs that are cached: a node patches its pods repeatedly, and has some hundred of them."""


_LIBRARY_ERRORS = (aiohttp.ClientError, OSError, ValueError)
"""Errors of the HTTP library for invalid responses, the network, and invalid headers."""


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """The timeouts of one request."""

    connect_seconds: float = 5.0
    """For the DNS lookup, and again for the connection with TLS: errors appear within 10 s."""
    total_seconds: float = 30.0
    """For a whole request with its response."""


class Transport:
    """The connections to one server. Open, use and close it in one event loop."""

    def __init__(
        self,
        config: ClientConfig,
        timeouts: Timeouts,
        user_agent: str,
        health: ServerHealth | None = None,
    ) -> None:
        self._config = config
        self._timeouts = timeouts
        self._health = health
        self._base = config.server
        self._requests = RequestMetrics() if health is None else health.requests
        self._host = server_host(config.server)
        self._url = lru_cache(maxsize=_MAX_CACHED_URLS)(self._parse_url)
        self._headers = {"Accept": JSON, "User-Agent": user_agent}
        self._no_timeout = self._client_timeout(None)
        """No total timeout: `_exchange` limits whole calls."""
        self._session: aiohttp.ClientSession | None = None
        self._secrets: tuple[str, ...] = ()
        """The last credentials that were sent, which no message may contain."""
        self._streams: set[ResponseStream] = set()

    def open(self) -> None:
        """Create the session; connections are opened on demand."""
        connector = aiohttp.TCPConnector(
            # No limit: callers limit their concurrency, and a lease must not wait for statuses.
            limit=0,
            keepalive_timeout=_KEEP_ALIVE_SECONDS,
            resolver=Resolver(self._timeouts.connect_seconds),
        )
        self._session = aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), headers=self._headers
        )

    async def close(self) -> None:
        """Close all streams and connections."""
        session, self._session = self._session, None
        for stream in tuple(self._streams):
            stream.close()
        if session is not None:
            await session.close()

    async def call(self, request: RestRequest) -> bytes:
        """Send a request and return the response body. Raises ApiError."""
        started_at = time.monotonic()
        try:
            credentials = await self._config.credentials()
            response, body = await self._exchange(request, credentials)
            if response.status == 401:
                renewed = await self._config.renew(credentials)
                if renewed is not None:
                    response, body = await self._exchange(request, renewed)
        except _LIBRARY_ERRORS as error:
            raise self._record_failure(request, error) from _cause(error)
        finally:
            self._requests.seconds.observe(
                time.monotonic() - started_at, request.method, self._host
            )
        return self._check_response(request, response, body)

    async def _exchange(
        self, request: RestRequest, credentials: Credentials
    ) -> tuple[aiohttp.ClientResponse, bytes]:
        """Return the response and its body. Raises TimeoutError."""
        # One timer for the whole call: aiohttp's own ones are set again for each part of it.
        async with asyncio.timeout(self._timeouts.total_seconds):
            response = await self._send(request, credentials, self._no_timeout)
            # `read_body` releases or closes the connection, so `async with` is not needed.
            return response, await read_body(response, request.max_bytes)

    async def open_stream(
        self, request: RestRequest, *, total_seconds: float, idle_timeout_seconds: float
    ) -> "ResponseStream":
        """Send a request and return the body as a stream, which the caller closes.

        Raises ApiError.
        """
        timeout = self._client_timeout(total_seconds, idle_timeout_seconds)
        with self._translate_errors(request):
            # A server may send `100 Continue` for as long as a watch may take.
            async with asyncio.timeout(self._timeouts.total_seconds):
                response = await self._send_with_renewal(request, timeout)
        stream = ResponseStream(
            response,
            idle_timeout_seconds=idle_timeout_seconds,
            action=_describe_request(request),
            translation=self._translate_errors(request),
            on_close=self._streams.discard,
            health=self._health,
        )
        self._streams.add(stream)
        try:
            if not is_success(response.status) or _is_html(response):
                with self._translate_errors(request):
                    async with asyncio.timeout(self._timeouts.total_seconds):
                        body = await read_body(response, request.max_bytes)
                    self._check_response(request, response, body)
        except BaseException:
            stream.close()
            raise
        return stream

    def _client_timeout(
        self, total: float | None, idle: float | None = None
    ) -> aiohttp.ClientTimeout:
        connect = self._timeouts.connect_seconds
        # The DNS lookup and the connection; a CONNECT to a proxy has to be as fast.
        return aiohttp.ClientTimeout(
            total=total, connect=2 * connect, sock_connect=connect, sock_read=idle
        )

    async def _send_with_renewal(
        self, request: RestRequest, limit_seconds: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        """Return the response; after a 401, retry once with renewed credentials."""
        credentials = await self._config.credentials()
        response = await self._send(request, credentials, limit_seconds)
        if response.status != 401:
            return response
        await read_body(response, request.max_bytes)  # releases the connection
        renewed = await self._config.renew(credentials)
        return response if renewed is None else await self._send(request, renewed, limit_seconds)

    async def _send(
        self, request: RestRequest, credentials: Credentials, limit_seconds: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("the client is not open; use it within `async with`")
        requested_at = 0 if self._health is None else self._health.monotonic()
        code = None
        self._secrets = authorization_secrets(credentials.authorization)
        try:
            response = await self._session.request(
                request.method,
                self._url(request.path),
                data=request.body,
                headers=_headers(request, credentials),
                allow_redirects=False,
                proxy=self._config.proxy,
                server_hostname=self._config.server_hostname,
                ssl=credentials.tls or True,
                timeout=limit_seconds,
            )
            code = response.status
        finally:
            self._requests.record_response(code, request.method, self._host)
        if self._health is not None:
            self._health.record_response()
            self._health.record_date(response.headers.get("Date"), requested_at)
        return response

    def _parse_url(self, path: str) -> URL:
        return URL(self._base + path, encoded=True)

    def _check_response(
        self, request: RestRequest, response: aiohttp.ClientResponse, body: bytes
    ) -> bytes:
        source = self._config.source
        if not is_success(response.status):
            after = response.headers.get("Retry-After")
            status = read_status(body, self.redact)
            raise status_error(_describe_request(request), source, response.status, status, after)
        if _is_html(response):
            raise not_an_api_server(_describe_request(request), self._base, source)
        return body

    def _translate_errors(self, request: RestRequest) -> "ErrorTranslation":
        return ErrorTranslation(lambda error: self._record_failure(request, error))

    def _record_failure(self, request: RestRequest, error: Exception) -> UnavailableError:
        if self._health is not None:
            self._health.record_failure()
        return transport_error(
            _describe_request(request), self._base, self._config.source, error, self.redact
        )

    def redact(self, text: str) -> str:
        """Remove the credentials of the last request from a text of the server."""
        return redact_secrets(text, self._secrets)


class ErrorTranslation:
    """A reusable context manager that translates errors of the HTTP library to `ApiError`."""

    def __init__(self, translate: Callable[[Exception], UnavailableError]) -> None:
        self._translate = translate

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, *__: object) -> None:
        if isinstance(error, _LIBRARY_ERRORS):
            raise self._translate(error) from _cause(error)


class ResponseStream:
    """A response body that is read as it arrives, with an idle timeout."""

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        *,
        idle_timeout_seconds: float,
        action: str,
        translation: ErrorTranslation,
        on_close: Callable[["ResponseStream"], None],
        health: ServerHealth | None = None,
    ) -> None:
        self._response = response
        self._idle_timeout_seconds = idle_timeout_seconds
        self._action = action
        self._translation = translation
        self._on_close = on_close
        self._health = health
        self._loop = asyncio.get_running_loop()
        self._waiting_since: float | None = None
        self._watchdog = self._loop.call_later(idle_timeout_seconds, self._check_idle)

    async def read(self) -> bytes:
        with self._translation:
            self._waiting_since = self._loop.time()
            try:
                data = await self._response.content.readany()
            except TimeoutError as error:
                reason = f"no data for {self._idle_timeout_seconds:g} s"
                raise WatchIdleError(f"{self._action}: {reason}") from error
            finally:
                self._waiting_since = None
        if data and self._health is not None:
            self._health.record_response()
        return data

    def _check_idle(self) -> None:
        """Fail a read that exceeds the idle timeout, or check again when one could.

        aiohttp's own timeout ends with the connection, and an invalid body may never end (3.14:
        unreadable chunks). A timer per read would cost as much as all other work for an event.
        """
        now = self._loop.time()
        due = self._idle_timeout_seconds + (
            now if (since := self._waiting_since) is None else since
        )
        if due <= now:
            self._response.content.set_exception(TimeoutError())
        else:
            self._watchdog = self._loop.call_at(due, self._check_idle)

    def close(self) -> None:
        """Close the connection immediately; unread data is dropped, as it may be endless."""
        self._watchdog.cancel()
        connection = self._response.connection
        if connection is not None and connection.protocol is not None:
            # Without a TLS shutdown, which would wait for a hanging server.
            connection.protocol.abort()
        self._response.close()
        self._on_close(self)


def _is_html(response: aiohttp.ClientResponse) -> bool:
    """Whether the response is a web page: of another server, a login portal or a proxy."""
    header = response.headers.get("Content-Type", "")
    return header != JSON and response.content_type == "text/html"


def _cause(error: Exception) -> Exception | None:
    """Return the `__cause__` of a translated error."""
    # A ClientResponseError holds the request with its token, which a traceback would show.
    return None if isinstance(error, aiohttp.ClientResponseError) else error


def _describe_request(request: RestRequest) -> str:
    return f"{request.method} {request.path_without_query}"


def _headers(request: RestRequest, credentials: Credentials) -> Mapping[str, str]:
    headers = {}
    if credentials.authorization is not None:
        headers["Authorization"] = credentials.authorization
    if request.body is not None:
        headers["Content-Type"] = request.content_type
    return headers
