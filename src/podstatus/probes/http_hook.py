"""Ask a container's server for what a hook names: whatever it answers, the hook has succeeded.

Upstream: runHTTPHandler, pkg/kubelet/lifecycle/handlers.go; RedirectChecker,
pkg/probe/http/http.go v1.36.4.
"""

import ssl
from contextlib import suppress

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from podstatus.probes.dial_error import dial_words
from podstatus.probes.http_client import MOST_REQUESTS, REDIRECTS, http_session
from podstatus.probes.http_target import HttpTarget
from podstatus.probes.resolver import Names

MOST_BODY = 10 * 1024
"""Bytes of an answer that are waited for. Upstream's."""
_NOT_TLS = ("WRONG_VERSION_NUMBER", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE")
"""What OpenSSL says of bytes that are no TLS, such as those of an answer in plain HTTP."""


async def get_for_hook(target: HttpTarget) -> bool:
    """Send the request; whether a server without TLS had to be asked again by plain HTTP.

    Certificates are not verified, and no time is limited. Raises ConnectionError.
    """
    url, headers = URL(target.url, encoded=True), CIMultiDict(target.headers)
    try:
        await _get(url, headers)
    except (aiohttp.ClientError, OSError, ValueError) as error:
        if _speaks_plain_http(error) and await _is_answered_plainly(url, headers):
            return True
        raise ConnectionError(f'Get "{target.url}": {_why(error)}') from error
    return False


async def _is_answered_plainly(url: URL, headers: CIMultiDict[str]) -> bool:
    # Who asked for TLS has not agreed to show this to everybody.
    open_headers = CIMultiDict((k, v) for k, v in headers.items() if k.lower() != "authorization")
    try:
        await _get(_plain(url), open_headers)
    except (aiohttp.ClientError, OSError, ValueError):
        return False
    return True


async def _get(url: URL, headers: CIMultiDict[str]) -> None:
    """Ask, and follow where the same host leads; an answer that leads elsewhere is the last one."""
    host, headers = url.host, headers.copy()
    async with http_session(Names()) as session:
        for _ in range(MOST_REQUESTS):
            async with session.get(url, headers=headers, allow_redirects=False) as answer:
                await _read(answer)
            place = URL(answer.headers.get("Location", ""), encoded=True)
            if answer.status not in REDIRECTS or not str(place):
                return
            if place.absolute:
                headers.popall("Host", None)  # it was meant for the first
            url = url.join(place)
            if url.host != host:
                return
    raise aiohttp.ClientError(f"stopped after {MOST_REQUESTS} redirects")


async def _read(answer: aiohttp.ClientResponse) -> None:
    """Let the server finish, unless it has much to say. How the answer ends does not matter."""
    if (answer.content_length or 0) > MOST_BODY:
        return
    read = 0
    with suppress(aiohttp.ClientError, OSError):
        async for piece in answer.content.iter_any():
            read += len(piece)
            if read >= MOST_BODY:
                return


def _speaks_plain_http(error: BaseException) -> bool:
    why = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error.__cause__
    return isinstance(why, ssl.SSLError) and why.reason in _NOT_TLS


def _plain(url: URL) -> URL:
    return URL(str(url).replace("https://", "http://", 1), encoded=True)


def _why(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        if isinstance(error.os_error, ssl.SSLError):
            return str(error.os_error)
        return dial_words(error.host, error.port or 0, error.os_error)
    return str(error) or type(error).__name__
