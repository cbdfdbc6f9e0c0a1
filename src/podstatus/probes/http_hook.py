"""Ask a container's server for what a hook names: whatever it answers, the hook has succeeded.

Upstream: runHTTPHandler, pkg/kubelet/lifecycle/handlers.go; RedirectChecker,
pkg/probe/http/http.go v1.36.4.
"""

import ssl
from contextlib import suppress

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from podstatus.probes.dial_error import dial_error_message
from podstatus.probes.http_client import MAX_REQUESTS, REDIRECT_STATUSES, http_session
from podstatus.probes.http_target import HttpTarget
from podstatus.probes.resolver import HostResolver

MAX_BODY_BYTES = 10 * 1024
"""Bytes of an answer that are waited for. Upstream's."""
_NOT_TLS_REASONS = ("WRONG_VERSION_NUMBER", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE")
"""What OpenSSL says of bytes that are no TLS, such as those of an answer in plain HTTP."""


async def send_hook_request(target: HttpTarget) -> bool:
    """Send the request; whether a server without TLS had to be asked again by plain HTTP.

    Certificates are not verified, and no time is limited. Raises ConnectionError.
    """
    url, headers = URL(target.url, encoded=True), CIMultiDict(target.headers)
    try:
        await _get(url, headers)
    except (aiohttp.ClientError, OSError, ValueError) as error:
        if _is_plain_http(error) and await _retry_plain_http(url, headers):
            return True
        raise ConnectionError(f'Get "{target.url}": {_describe_error(error)}') from error
    return False


async def _retry_plain_http(url: URL, headers: CIMultiDict[str]) -> bool:
    # Who asked for TLS has not agreed to show this to everybody.
    open_headers = CIMultiDict((k, v) for k, v in headers.items() if k.lower() != "authorization")
    try:
        await _get(_http_url(url), open_headers)
    except (aiohttp.ClientError, OSError, ValueError):
        return False
    return True


async def _get(url: URL, headers: CIMultiDict[str]) -> None:
    """Ask, and follow where the same host leads; an answer that leads elsewhere is the last one."""
    host, headers = url.host, headers.copy()
    async with http_session(HostResolver()) as session:
        for _ in range(MAX_REQUESTS):
            async with session.get(url, headers=headers, allow_redirects=False) as answer:
                await _drain(answer)
            place = URL(answer.headers.get("Location", ""), encoded=True)
            if answer.status not in REDIRECT_STATUSES or not str(place):
                return
            if place.absolute:
                headers.popall("Host", None)  # it was meant for the first
            url = url.join(place)
            if url.host != host:
                return
    raise aiohttp.ClientError(f"stopped after {MAX_REQUESTS} redirects")


async def _drain(answer: aiohttp.ClientResponse) -> None:
    """Let the server finish, unless it has much to say. How the answer ends does not matter."""
    if (answer.content_length or 0) > MAX_BODY_BYTES:
        return
    read = 0
    with suppress(aiohttp.ClientError, OSError):
        async for piece in answer.content.iter_any():
            read += len(piece)
            if read >= MAX_BODY_BYTES:
                return


def _is_plain_http(error: BaseException) -> bool:
    why = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error.__cause__
    return isinstance(why, ssl.SSLError) and why.reason in _NOT_TLS_REASONS


def _http_url(url: URL) -> URL:
    return URL(str(url).replace("https://", "http://", 1), encoded=True)


def _describe_error(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        if isinstance(error.os_error, ssl.SSLError):
            return str(error.os_error)
        return dial_error_message(error.host, error.port or 0, error.os_error)
    return str(error) or type(error).__name__
