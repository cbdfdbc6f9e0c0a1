"""Send requests: the connections, who we are, and what became of it."""

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import TracebackType

import aiohttp
import msgspec
from yarl import URL

from podstatus.client.auth.config import ClientConfig, Credentials
from podstatus.client.errors import WatchIdleError
from podstatus.client.rest.deadlines import RequestDeadlines
from podstatus.client.rest.redaction import authorization_secrets, redact_secrets
from podstatus.client.rest.request import JSON, RestRequest
from podstatus.client.rest.resolver import Resolver
from podstatus.client.rest.response_body import is_success, read_body
from podstatus.client.rest.server_health import RequestMetrics, ServerHealth, server_host
from podstatus.client.rest.status_error import read_status, status_error
from podstatus.client.rest.transport_error import not_an_api_server, transport_error
from podstatus.kube.errors import UnavailableError

_KEEP_ALIVE_SECONDS = 60.0
"""How long an idle connection is kept: longer than the 10 s between two reconciles, and shorter
than the 90 s after which an API server closes it."""

_MAX_CACHED_URLS = 1024
"""That are remembered, with what is found out about each: a node's pods are patched again and
again, and it has some hundred of them at most."""


_LIBRARY_ERRORS = (aiohttp.ClientError, OSError, ValueError)
"""What the HTTP library raises for what a server sends, and for a header that cannot be sent."""


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """How long to wait for what."""

    connect_seconds: float = 5.0
    """For an address, and again for a connection with TLS: an error is told within 10 s."""
    total_seconds: float = 30.0
    """For a whole request."""


class Transport:
    """The connections to one server. To be opened and closed in the loop that uses it."""

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
        self._deadlines = RequestDeadlines(timeouts.total_seconds)
        self._no_timeout = self._client_timeout(None)
        """Of itself: whole calls have deadlines."""
        self._session: aiohttp.ClientSession | None = None
        self._secrets: tuple[str, ...] = ()
        """What was sent last that no message may repeat."""
        self._streams: set[ResponseStream] = set()

    def open(self) -> None:
        """Be ready to connect."""
        self._deadlines = RequestDeadlines(self._timeouts.total_seconds)
        connector = aiohttp.TCPConnector(
            # Callers bound what is under way: a lease must not wait behind pods' statuses.
            limit=0,
            keepalive_timeout=_KEEP_ALIVE_SECONDS,
            resolver=Resolver(self._timeouts.connect_seconds),
        )
        self._session = aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), headers=self._headers
        )

    async def close(self) -> None:
        """End all connections."""
        session, self._session = self._session, None
        for stream in tuple(self._streams):
            stream.close()
        if session is not None:
            await session.close()

    async def call(self, request: RestRequest) -> bytes:
        """The body of the answer. Raises ApiError."""
        began = time.monotonic()
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
            self._requests.record_call(time.monotonic() - began, request.method, self._host)
        return self._check_response(request, response, body)

    async def _exchange(
        self, request: RestRequest, credentials: Credentials
    ) -> tuple[aiohttp.ClientResponse, bytes]:
        """An answer with its body, in time."""
        task = self._deadlines.begin()
        try:
            response = await self._send(request, credentials, self._no_timeout)
            # Gives the connection back, or ends it if it fails: `async with` would do so again.
            return response, await read_body(response, request.max_bytes)
        except asyncio.CancelledError as error:
            if self._deadlines.is_missed(task):
                raise TimeoutError from error
            raise
        finally:
            self._deadlines.end(task)

    async def open_stream(
        self, request: RestRequest, *, total_seconds: float, idle_timeout_seconds: float
    ) -> "ResponseStream":
        """The body of an answer as it comes, to be closed. Raises ApiError."""
        within = self._client_timeout(total_seconds, idle_timeout_seconds)
        with self._translate_errors(request):
            # A server may say `100 Continue` for as long as a watch may take.
            async with asyncio.timeout(self._timeouts.total_seconds):
                response = await self._send_with_renewal(request, within)
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
        # An address and a connection; a proxy that is asked to connect has to be as fast.
        return aiohttp.ClientTimeout(
            total=total, connect=2 * connect, sock_connect=connect, sock_read=idle
        )

    async def _send_with_renewal(
        self, request: RestRequest, limit_seconds: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        """The answer; if our credentials were refused, the one to others, once."""
        credentials = await self._config.credentials()
        response = await self._send(request, credentials, limit_seconds)
        if response.status != 401:
            return response
        await read_body(response, request.max_bytes)  # gives the connection back
        renewed = await self._config.renew(credentials)
        return response if renewed is None else await self._send(request, renewed, limit_seconds)

    async def _send(
        self, request: RestRequest, credentials: Credentials, limit_seconds: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("the client is not open; use it within `async with`")
        asked = 0 if self._health is None else self._health.now()
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
            self._health.record_date(response.headers.get("Date"), asked)
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
        """The text of a server without what is secret of the credentials that it was sent."""
        return redact_secrets(text, self._secrets)


class ErrorTranslation:
    """Within it what the HTTP library raises becomes an error of ours. May be entered again."""

    def __init__(self, translate: Callable[[Exception], UnavailableError]) -> None:
        self._translate = translate

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, _LIBRARY_ERRORS):
            raise self._translate(error) from _cause(error)


class ResponseStream:
    """What is left of a body."""

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
        """What has come, once there is something; empty at the end. Raises ApiError."""
        with self._translation:
            self._waiting_since = self._loop.time()
            try:
                said = await self._response.content.readany()
            except TimeoutError as error:
                why = f"nothing was said for {self._idle_timeout_seconds:g} s"
                raise WatchIdleError(f"{self._action}: {why}") from error
            finally:
                self._waiting_since = None
        if said and self._health is not None:
            self._health.record_response()
        return said

    def _check_idle(self) -> None:
        """End a read that has waited for too long, or look again when one could have.

        aiohttp's own limit ends with the connection, and a body that is no proper one may never
        end (3.14: chunks that cannot be read). A timer for each read would cost as much as all
        else that is done here for an event.
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
        """End the connection at once: what was not read is of no use, and may never end."""
        self._watchdog.cancel()
        connection = self._response.connection
        if connection is not None and connection.protocol is not None:
            # Without a goodbye in TLS, for which a server that hangs would be waited for.
            connection.protocol.abort()
        self._response.close()
        self._on_close(self)


def _is_html(response: aiohttp.ClientResponse) -> bool:
    """Whether a person was meant to read it: some other server, a portal, a proxy."""
    said = response.headers.get("Content-Type", "")
    return said != JSON and response.content_type == "text/html"


def _cause(error: Exception) -> Exception | None:
    """What an error of ours may name as its cause."""
    # Such a one holds the request, and with it our token: whoever prints it would show that.
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
