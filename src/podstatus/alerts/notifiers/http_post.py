"""Post JSON to external servers: certificates are verified, redirects and cookies are not used.

    rejected permanently:                   ActionError
    overloaded, broken, outcome unknown:    RetryableError
    not connected, or not accepted yet:     NotSentError

Messages contain only the host of a URL: the rest may be secret. The response body is redacted
before it is truncated: it may quote the request, with its token and signature.
"""

import asyncio
import base64
from collections.abc import Mapping, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import aiohttp
import msgspec
from yarl import URL

from podstatus.alerts.notifiers.messages.redaction import Redactor
from podstatus.alerts.notifiers.secret_files import read_with_timeout, tls_trust
from podstatus.alerts.ports import ActionError, NotSentError, RetryableError
from podstatus.base.clock import Clock
from podstatus.base.control_chars import escape_control_chars
from podstatus.client.rest.resolver import Resolver
from podstatus.client.rest.transport_error import transport_cause

_CONNECT_SECONDS = 5.0
"""For the name lookup, and again for the connection."""
_KEEP_ALIVE_SECONDS = 1.0
"""Alerts sent together share a connection. A longer keep-alive would risk that the server closes
the connection during a request, whose outcome is then unknown."""
_MAX_ERROR_TEXT = 200
"""Characters of an error response that are reported."""
_MAX_READ = 2048
"""Bytes of an error response that are read."""
_READ_SECONDS = 1.0
"""For the body of an error response; after that, what has arrived is reported."""
_MIN_PART = 8
"""Minimum length of a path segment that may be secret; `hook` is not."""
_MIN_VALUE = 4
"""The same for a user name and for a query value."""
_MAX_RETRY_AFTER = 3600.0
"""Upper bound for Retry-After."""
_RETRYABLE_CODES = frozenset((408, 425, 429))
"""Temporary rejections, besides all 5xx."""
_PERMANENT_CODES = frozenset((400, 410, 413, 422))
"""Rejections of the request itself. All others concern the configuration, such as an expired token
or a path that is not served yet, and may be fixed while alerts fire."""


class PostRequest(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    body: bytes
    headers: Mapping[str, str] = {}
    ca_file: str = ""
    """CA bundle (PEM); empty: the CAs that the system trusts."""
    timeout_seconds: float = 10.0


class HttpPostClient:
    """A pool of connections. For one event loop; close it in the same loop."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def send(self, post: PostRequest) -> None:
        """Return once the server has accepted the request. Raises ActionError."""
        url = _parse(post.url)
        has_user = url.raw_user is not None or url.raw_password is not None
        if "Authorization" in post.headers and has_user:
            raise ActionError("the url has a user, and tokenFile is set; remove one of them")
        where = str(url.origin())
        secrets = _secrets(url, post.headers)
        try:
            async with self._open().post(
                url,
                data=post.body,
                headers={"Content-Type": "application/json", **post.headers},
                allow_redirects=False,
                ssl=await read_with_timeout(tls_trust, post.ca_file),
                timeout=aiohttp.ClientTimeout(total=post.timeout_seconds),
            ) as response:
                is_accepted = 200 <= response.status < 300
                text = "" if is_accepted else await _read_error_body(response, secrets)
        except (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError) as error:
            raise NotSentError(
                f"cannot connect to {where}: {_describe_error(error, secrets)}"
            ) from None
        except TimeoutError:
            raise RetryableError(
                f"no response from {where} in {post.timeout_seconds:g} s"
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            # Without a cause: the exception may hold the request, with its signature and URL.
            raise RetryableError(
                f"no response from {where}: {_describe_error(error, secrets)}"
            ) from None
        if not is_accepted:
            raise self._response_error(where, response, text)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=0,
                keepalive_timeout=_KEEP_ALIVE_SECONDS,
                resolver=Resolver(_CONNECT_SECONDS),
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": "podstatus"},
            )
        return self._session

    def _response_error(
        self, where: str, response: aiohttp.ClientResponse, text: str
    ) -> ActionError:
        message = f"{where} answers {response.status} {_phrase(response.status)}"
        message += f": {text}" if text else ""
        if response.status in _PERMANENT_CODES:
            return PostRejectedError(message, code=response.status)
        after = retry_after(response.headers.get("Retry-After", ""), self._clock.now())
        if response.status in _RETRYABLE_CODES or response.status >= 500:
            return RetryableError(message, retry_after_seconds=after)
        if 300 <= response.status < 400:
            message += "; redirects are not followed, set the url to the target of the redirect"
        return NotSentError(message, retry_after_seconds=after)


class PostRejectedError(ActionError):
    """The server rejected the request permanently."""

    def __init__(self, message: str, *, code: int) -> None:
        super().__init__(message)
        self.code = code


def retry_after(header: str, now: int) -> float:
    """Parse Retry-After, seconds or a date; return seconds, 0 if it is invalid."""
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - now / 1e9
        except (ValueError, OverflowError):
            return 0.0
    return min(max(seconds, 0.0), _MAX_RETRY_AFTER) if seconds == seconds else 0.0


def _parse(text: str) -> URL:
    try:
        url = URL(text)
        is_valid = url.scheme in ("http", "https") and bool(url.host)
    except ValueError:
        is_valid = False
    if not is_valid:
        raise ActionError("the url is invalid; write it as https://host/path, or with http://")
    return url


def _secrets(url: URL, headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of a request that must not appear in any message."""
    sent = [value.partition(" ")[2] for name, value in headers.items() if name == "Authorization"]
    for name, value in headers.items():
        if name == "webhook-signature":
            sent += (signed.partition(",")[2] for signed in value.split(" "))
    user, password = url.user or "", url.password or ""
    sent += (password, url.raw_password or "")
    if user or password:
        sent.append(base64.b64encode(f"{user}:{password}".encode()).decode())
    values = (user, *url.query.values())
    sent += (value for value in values if len(value) >= _MIN_VALUE)
    sent += (part for part in url.parts if len(part) >= _MIN_PART)
    return tuple(sent)


def _describe_error(error: Exception, secrets: Sequence[str]) -> str:
    return _redact(_reason(error), secrets)


def _reason(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientResponseError):
        return error.message
    if isinstance(error, OSError):
        return transport_cause(error)
    # The text of other exceptions may contain the whole URL.
    return type(error).__name__


async def _read_error_body(response: aiohttp.ClientResponse, secrets: Sequence[str]) -> str:
    """Read the beginning of an error response within the time limit, redacted."""
    content, is_whole = b"", False
    with suppress(TimeoutError):
        async with asyncio.timeout(_READ_SECONDS):
            while not is_whole and len(content) < _MAX_READ:
                piece = await response.content.read(_MAX_READ - len(content))
                content, is_whole = content + piece, not piece
    return _redact(content.decode(errors="replace"), secrets, is_cut=not is_whole)


def _redact(text: str, secrets: Sequence[str], *, is_cut: bool = False) -> str:
    """Redact first and truncate last, so that no prefix of a secret is left; return one line."""
    is_cut = is_cut or len(text) > _MAX_READ
    redacted = Redactor(secrets).redact(text[:_MAX_READ], is_cut=is_cut)
    return escape_control_chars(" ".join(redacted.split()))[:_MAX_ERROR_TEXT]


def _phrase(code: int) -> str:
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return ""
