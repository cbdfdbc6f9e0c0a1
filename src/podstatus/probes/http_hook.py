"""HTTP requests of httpGet lifecycle hooks. Any response counts as success.

Upstream: runHTTPHandler, pkg/kubelet/lifecycle/handlers.go v1.36.4.
"""

import ssl
from contextlib import suppress

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from podstatus.probes.decide.http_target import HttpTarget
from podstatus.probes.http_client import MAX_REQUESTS, http_session, redirect_url
from podstatus.probes.resolver import HostResolver, dial_error_message

MAX_BODY_BYTES = 10 * 1024
"""Bytes of a response body that are read. Upstream's value."""
_NOT_TLS_REASONS = ("WRONG_VERSION_NUMBER", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE")
"""OpenSSL error reasons for a response that is not TLS, such as plain HTTP."""


async def send_hook_request(target: HttpTarget) -> bool:
    """Send the request. True if HTTPS failed because the server speaks plain HTTP.

    Certificates are not verified. There is no timeout. Raises ConnectionError.
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
    # Never send credentials in plain text that were meant for TLS.
    plain_headers = CIMultiDict((k, v) for k, v in headers.items() if k.lower() != "authorization")
    try:
        plain = str(url).replace("https://", "http://", 1)
        await _get(URL(plain, encoded=True), plain_headers)
    except (aiohttp.ClientError, OSError, ValueError):
        return False
    return True


async def _get(url: URL, headers: CIMultiDict[str]) -> None:
    """Send a GET request and follow redirects, as long as they stay on the same host."""
    host, headers = url.host, headers.copy()
    async with http_session(HostResolver()) as session:
        for _ in range(MAX_REQUESTS):
            async with session.get(url, headers=headers, allow_redirects=False) as response:
                await _drain(response)
            next_url = redirect_url(response, url, host, headers)
            if next_url is None:
                return
            url = next_url
    raise aiohttp.ClientError(f"stopped after {MAX_REQUESTS} redirects")


async def _drain(response: aiohttp.ClientResponse) -> None:
    """Read the body up to MAX_BODY_BYTES, so that the server can finish; ignore errors."""
    if (response.content_length or 0) > MAX_BODY_BYTES:
        return
    read = 0
    with suppress(aiohttp.ClientError, OSError):
        async for chunk in response.content.iter_any():
            read += len(chunk)
            if read >= MAX_BODY_BYTES:
                return


def _is_plain_http(error: BaseException) -> bool:
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error.__cause__
    return isinstance(cause, ssl.SSLError) and cause.reason in _NOT_TLS_REASONS


def _describe_error(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        if isinstance(error.os_error, ssl.SSLError):
            return str(error.os_error)
        return dial_error_message(error.host, error.port or 0, error.os_error)
    return str(error) or type(error).__name__
