"""Send requests: the connections, who we are, and what became of it."""

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import TracebackType

import aiohttp
import msgspec
from yarl import URL

from podstatus.client.auth.config import Access, Credentials
from podstatus.client.errors import SilentError
from podstatus.client.rest.deadlines import Deadlines
from podstatus.client.rest.redaction import redacted, secrets_of
from podstatus.client.rest.request import JSON, Request
from podstatus.client.rest.resolver import Resolver
from podstatus.client.rest.response_body import is_success, read_body
from podstatus.client.rest.server_health import Contact, RequestCounts, host_of
from podstatus.client.rest.status_error import read_status, refusal
from podstatus.client.rest.transport_error import failure, not_an_api_server
from podstatus.kube.errors import UnavailableError

_KEEP_ALIVE_SECONDS = 60.0
"""How long an idle connection is kept: longer than the 10 s between two reconciles, and shorter
than the 90 s after which an API server closes it."""

_MOST_URLS = 1024
"""That are remembered, with what is found out about each: a node's pods are patched again and
again, and it has some hundred of them at most."""


_FOREIGN = (aiohttp.ClientError, OSError, ValueError)
"""What the HTTP library raises for what a server sends, and for a header that cannot be sent."""


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """How long to wait for what."""

    connect_seconds: float = 5.0
    """For an address, and again for a connection with TLS: an error is told within 10 s."""
    total_seconds: float = 30.0
    """For a whole request."""


class Transport:
    """The connections to one server. To be opened and closed in the loop that uses it."""

    def __init__(
        self, access: Access, timing: Timing, user_agent: str, contact: Contact | None = None
    ) -> None:
        self._access = access
        self._timing = timing
        self._contact = contact
        self._base = access.server
        self._requests = RequestCounts() if contact is None else contact.requests
        self._host = host_of(access.server)
        self._url = lru_cache(maxsize=_MOST_URLS)(self._parse_url)
        self._headers = {"Accept": JSON, "User-Agent": user_agent}
        self._deadlines = Deadlines(timing.total_seconds)
        self._unlimited = self._within(None)
        """Of itself: whole calls have deadlines."""
        self._session: aiohttp.ClientSession | None = None
        self._secrets: tuple[str, ...] = ()
        """What was sent last that no message may repeat."""
        self._streams: set[Stream] = set()

    def open(self) -> None:
        """Be ready to connect."""
        self._deadlines = Deadlines(self._timing.total_seconds)
        connector = aiohttp.TCPConnector(
            # Callers bound what is under way: a lease must not wait behind pods' statuses.
            limit=0,
            keepalive_timeout=_KEEP_ALIVE_SECONDS,
            resolver=Resolver(self._timing.connect_seconds),
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

    async def call(self, request: Request) -> bytes:
        """The body of the answer. Raises ApiError."""
        began = time.monotonic()
        try:
            credentials = await self._access.credentials()
            response, body = await self._exchange(request, credentials)
            if response.status == 401:
                renewed = await self._access.renew(credentials)
                if renewed is not None:
                    response, body = await self._exchange(request, renewed)
        except _FOREIGN as error:
            raise self._failed(request, error) from _cause(error)
        finally:
            self._requests.called(time.monotonic() - began, request.method, self._host)
        return self._checked(request, response, body)

    async def _exchange(
        self, request: Request, credentials: Credentials
    ) -> tuple[aiohttp.ClientResponse, bytes]:
        """An answer with its body, in time."""
        task = self._deadlines.begin()
        try:
            response = await self._send(request, credentials, self._unlimited)
            # Gives the connection back, or ends it if it fails: `async with` would do so again.
            return response, await read_body(response, request.max_bytes)
        except asyncio.CancelledError as error:
            if self._deadlines.is_missed(task):
                raise TimeoutError from error
            raise
        finally:
            self._deadlines.end(task)

    async def open_stream(
        self, request: Request, *, total_seconds: float, silence_seconds: float
    ) -> "Stream":
        """The body of an answer as it comes, to be closed. Raises ApiError."""
        within = self._within(total_seconds, silence_seconds)
        with self._translated(request):
            # A server may say `100 Continue` for as long as a watch may take.
            async with asyncio.timeout(self._timing.total_seconds):
                response = await self._answer(request, within)
        stream = Stream(
            response,
            silence_seconds=silence_seconds,
            tried=_tried(request),
            translation=self._translated(request),
            closed=self._streams.discard,
            contact=self._contact,
        )
        self._streams.add(stream)
        try:
            if not is_success(response.status) or _is_page(response):
                with self._translated(request):
                    async with asyncio.timeout(self._timing.total_seconds):
                        body = await read_body(response, request.max_bytes)
                    self._checked(request, response, body)
        except BaseException:
            stream.close()
            raise
        return stream

    def _within(self, total: float | None, silence: float | None = None) -> aiohttp.ClientTimeout:
        connect = self._timing.connect_seconds
        # An address and a connection; a proxy that is asked to connect has to be as fast.
        return aiohttp.ClientTimeout(
            total=total, connect=2 * connect, sock_connect=connect, sock_read=silence
        )

    async def _answer(
        self, request: Request, within: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        """The answer; if our credentials were refused, the one to others, once."""
        credentials = await self._access.credentials()
        response = await self._send(request, credentials, within)
        if response.status != 401:
            return response
        await read_body(response, request.max_bytes)  # gives the connection back
        renewed = await self._access.renew(credentials)
        return response if renewed is None else await self._send(request, renewed, within)

    async def _send(
        self, request: Request, credentials: Credentials, within: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("the client is not open; use it within `async with`")
        asked = 0 if self._contact is None else self._contact.now()
        code = None
        self._secrets = secrets_of(credentials.authorization)
        try:
            response = await self._session.request(
                request.method,
                self._url(request.path),
                data=request.body,
                headers=_headers(request, credentials),
                allow_redirects=False,
                proxy=self._access.proxy,
                server_hostname=self._access.server_hostname,
                ssl=credentials.tls or True,
                timeout=within,
            )
            code = response.status
        finally:
            self._requests.sent(code, request.method, self._host)
        if self._contact is not None:
            self._contact.heard()
            self._contact.dated(response.headers.get("Date"), asked)
        return response

    def _parse_url(self, path: str) -> URL:
        return URL(self._base + path, encoded=True)

    def _checked(self, request: Request, response: aiohttp.ClientResponse, body: bytes) -> bytes:
        source = self._access.source
        if not is_success(response.status):
            after = response.headers.get("Retry-After")
            status = read_status(body, self.redact)
            raise refusal(_tried(request), source, response.status, status, after)
        if _is_page(response):
            raise not_an_api_server(_tried(request), self._base, source)
        return body

    def _translated(self, request: Request) -> "Translation":
        return Translation(lambda error: self._failed(request, error))

    def _failed(self, request: Request, error: Exception) -> UnavailableError:
        if self._contact is not None:
            self._contact.failed()
        return failure(_tried(request), self._base, self._access.source, error, self.redact)

    def redact(self, text: str) -> str:
        """The text of a server without what is secret of the credentials that it was sent."""
        return redacted(text, self._secrets)


class Translation:
    """Within it what the HTTP library raises becomes an error of ours. May be entered again."""

    def __init__(self, failed: Callable[[Exception], UnavailableError]) -> None:
        self._failed = failed

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, _FOREIGN):
            raise self._failed(error) from _cause(error)


class Stream:
    """What is left of a body."""

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        *,
        silence_seconds: float,
        tried: str,
        translation: Translation,
        closed: Callable[["Stream"], None],
        contact: Contact | None = None,
    ) -> None:
        self._response = response
        self._silence_seconds = silence_seconds
        self._tried = tried
        self._translation = translation
        self._closed = closed
        self._contact = contact
        self._loop = asyncio.get_running_loop()
        self._waiting_since: float | None = None
        self._watchdog = self._loop.call_later(silence_seconds, self._look)

    async def read(self) -> bytes:
        """What has come, once there is something; empty at the end. Raises ApiError."""
        with self._translation:
            self._waiting_since = self._loop.time()
            try:
                said = await self._response.content.readany()
            except TimeoutError as error:
                why = f"nothing was said for {self._silence_seconds:g} s"
                raise SilentError(f"{self._tried}: {why}") from error
            finally:
                self._waiting_since = None
        if said and self._contact is not None:
            self._contact.heard()
        return said

    def _look(self) -> None:
        """End a read that has waited for too long, or look again when one could have.

        aiohttp's own limit ends with the connection, and a body that is no proper one may never
        end (3.14: chunks that cannot be read). A timer for each read would cost as much as all
        else that is done here for an event.
        """
        now = self._loop.time()
        due = self._silence_seconds + (now if (since := self._waiting_since) is None else since)
        if due <= now:
            self._response.content.set_exception(TimeoutError())
        else:
            self._watchdog = self._loop.call_at(due, self._look)

    def close(self) -> None:
        """End the connection at once: what was not read is of no use, and may never end."""
        self._watchdog.cancel()
        connection = self._response.connection
        if connection is not None and connection.protocol is not None:
            # Without a goodbye in TLS, for which a server that hangs would be waited for.
            connection.protocol.abort()
        self._response.close()
        self._closed(self)


def _is_page(response: aiohttp.ClientResponse) -> bool:
    """Whether a person was meant to read it: some other server, a portal, a proxy."""
    said = response.headers.get("Content-Type", "")
    return said != JSON and response.content_type == "text/html"


def _cause(error: Exception) -> Exception | None:
    """What an error of ours may name as its cause."""
    # Such a one holds the request, and with it our token: whoever prints it would show that.
    return None if isinstance(error, aiohttp.ClientResponseError) else error


def _tried(request: Request) -> str:
    return f"{request.method} {request.bare_path}"


def _headers(request: Request, credentials: Credentials) -> Mapping[str, str]:
    headers = {}
    if credentials.authorization is not None:
        headers["Authorization"] = credentials.authorization
    if request.body is not None:
        headers["Content-Type"] = request.content_type
    return headers
