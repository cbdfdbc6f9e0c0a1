"""Post JSON to servers of others: certificates checked, redirects not followed, nothing kept.

    refused, and the same again would be: DeedError
    busy, broken, or nobody knows:        TransientDeedError
    never got there, or no further:       NotReachedError

Messages name the host alone: the rest of an address may be a secret. What a server answers is
redacted before it is cut to length: it may quote the request, with its token and signature.
"""

import asyncio
import base64
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import aiohttp
import msgspec
from yarl import URL

from podstatus.alerts.notifiers.file_reads import read_with_timeout
from podstatus.alerts.notifiers.redaction import Redactor
from podstatus.alerts.notifiers.secret_files import tls_trust
from podstatus.alerts.ports import ActionError, NotSentError, RetryableError
from podstatus.base.clock import Clock
from podstatus.base.terminal import escape_control_chars
from podstatus.client.rest.resolver import Resolver

_CONNECT_SECONDS = 5.0
"""For an address, and again for a connection."""
_KEEP_ALIVE_SECONDS = 1.0
"""Many alerts at once share a connection. Later a server may be about to close it, and nobody
would know whether it heard what was sent then."""
_MAX_ERROR_TEXT = 200
"""Characters of a refusal that are shown."""
_MAX_READ = 2048
"""Bytes of a refusal that are read."""
_READ_SECONDS = 1.0
"""For the text of a refusal; after that it is shown as far as it has arrived."""
_MIN_PART = 8
"""Characters of a part of a path that may be a secret; `hook` is none."""
_MIN_VALUE = 4
"""The same for a user and for a value of a query."""
_MAX_RETRY_AFTER = 3600.0
"""A server that wants to be left alone for longer is asked all the same."""
_RETRYABLE_CODES = frozenset((408, 425, 429))
"""Refusals that are about this moment; and all of 500 and above."""
_PERMANENT_CODES = frozenset((400, 410, 413, 422))
"""Refusals that are about what was sent. Others are about the way there: a token that has expired,
a path that is not served yet. They are mended while alerts fire."""


class PostRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is posted, and where."""

    url: str
    body: bytes
    headers: Mapping[str, str] = {}
    ca_file: str = ""
    """Whom to trust; empty: whom this machine trusts."""
    timeout_seconds: float = 10.0


class HttpPostClient:
    """The connections. For one event loop; to be closed in it."""

    def __init__(self, *, clock: Clock, user_agent: str = "podstatus") -> None:
        self._clock = clock
        self._user_agent = user_agent
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """End all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def send(self, post: PostRequest) -> None:
        """Come back when it was taken. Raises DeedError."""
        url = _parse(post.url)
        if "Authorization" in post.headers and _has_user(url):
            raise ActionError("the url has a user, and there is a tokenFile; leave out one of them")
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
            ) as answer:
                is_taken = 200 <= answer.status < 300
                text = "" if is_taken else await _read_error_body(answer, secrets)
        except (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError) as error:
            raise NotSentError(
                f"cannot connect to {where}: {_describe_error(error, secrets)}"
            ) from None
        except TimeoutError:
            raise RetryableError(f"no answer from {where} in {post.timeout_seconds:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            # Not as its cause: it may hold the request, with signature and address.
            raise RetryableError(
                f"no answer from {where}: {_describe_error(error, secrets)}"
            ) from None
        if not is_taken:
            raise self._response_error(where, answer, text)

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
                headers={"User-Agent": self._user_agent},
            )
        return self._session

    def _response_error(self, where: str, answer: aiohttp.ClientResponse, text: str) -> ActionError:
        said = f"{where} answers {answer.status} {_phrase(answer.status)}"
        said += f": {text}" if text else ""
        if answer.status in _PERMANENT_CODES:
            return PostRejectedError(said, code=answer.status)
        after = retry_after(answer.headers.get("Retry-After", ""), self._clock.now())
        if answer.status in _RETRYABLE_CODES or answer.status >= 500:
            return RetryableError(said, retry_after_seconds=after)
        if 300 <= answer.status < 400:
            said += "; redirects are not followed, give the address that it leads to"
        return NotSentError(said, retry_after_seconds=after)


class PostRejectedError(ActionError):
    """A server answered that it does not want this."""

    def __init__(self, message: str, *, code: int) -> None:
        super().__init__(message)
        self.code = code


def retry_after(header: str, now: int) -> float:
    """Seconds that a server wants to be left alone for: it names them, or a date."""
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
        is_known = url.scheme in ("http", "https") and bool(url.host)
    except ValueError:
        is_known = False
    if not is_known:
        raise ActionError("the url is none of http or https; write it as https://host/path")
    return url


def _has_user(url: URL) -> bool:
    return url.raw_user is not None or url.raw_password is not None


def _secrets(url: URL, headers: Mapping[str, str]) -> tuple[str, ...]:
    """What a request holds that nothing else may show."""
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
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return str(error.certificate_error)
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return error.os_error.strerror or str(error.os_error)
    if isinstance(error, aiohttp.ClientConnectorError):
        # The text of asyncio names its own call instead of the reason.
        number = error.os_error.errno
        return os.strerror(number).lower() if number else str(error.os_error)
    if isinstance(error, aiohttp.ClientResponseError):
        return error.message
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno).lower()
    # The text of others may hold the whole address.
    return type(error).__name__


async def _read_error_body(answer: aiohttp.ClientResponse, secrets: Sequence[str]) -> str:
    """The beginning of what a server says, redacted; as much of it as came in time."""
    content, is_whole = b"", False
    with suppress(TimeoutError):
        async with asyncio.timeout(_READ_SECONDS):
            while not is_whole and len(content) < _MAX_READ:
                piece = await answer.content.read(_MAX_READ - len(content))
                content, is_whole = content + piece, not piece
    return _redact(content.decode(errors="replace"), secrets, is_cut=not is_whole)


def _redact(text: str, secrets: Sequence[str], *, is_cut: bool = False) -> str:
    """In one line, redacted first and cut last: a cut must not leave the start of a secret."""
    is_cut = is_cut or len(text) > _MAX_READ
    redacted = Redactor(secrets).redact(text[:_MAX_READ], is_cut=is_cut)
    return escape_control_chars(" ".join(redacted.split()))[:_MAX_ERROR_TEXT]


def _phrase(code: int) -> str:
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return ""
