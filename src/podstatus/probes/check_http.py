"""HTTP checks (httpGet probes).

Upstream: DoHTTPProbe, pkg/probe/http/http.go v1.36.4.
"""

import asyncio

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from podstatus.probes.decide.check_result import MAX_OUTPUT_BYTES, CheckError, CheckResult
from podstatus.probes.decide.http_target import HttpTarget
from podstatus.probes.http_client import MAX_REQUESTS, http_session, redirect_url
from podstatus.probes.resolver import HostResolver, dial_error_message

_HEADERS_TIMEOUT = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
_BODY_TIMEOUT = (
    "context deadline exceeded (Client.Timeout or context cancellation while reading body)"
)


async def check_http(target: HttpTarget, *, seconds: float, resolver: HostResolver) -> CheckResult:
    """Send a GET request; follow redirects to the same host. Raises CheckError."""
    http_check = _HttpCheck(target)
    try:
        async with asyncio.timeout(seconds), http_session(resolver) as session:
            return await http_check.run(session)
    except TimeoutError:
        return http_check.failed(_HEADERS_TIMEOUT, in_body=_BODY_TIMEOUT)
    except aiohttp.ClientConnectorError as error:
        message = dial_error_message(error.host, error.port or 0, error.os_error)
        return http_check.failed(message)
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return http_check.failed(str(error) or type(error).__name__)


class _HttpCheck:
    """State of one check: the current URL, and whether a response has arrived."""

    def __init__(self, target: HttpTarget) -> None:
        self._url = URL(target.url, encoded=True)
        self._host = self._url.host
        self._headers = CIMultiDict(target.headers)
        self._headers.setdefault("Connection", "close")
        self._has_response = False

    async def run(self, session: aiohttp.ClientSession) -> CheckResult:
        for _ in range(MAX_REQUESTS):
            async with session.get(
                self._url, headers=self._headers, allow_redirects=False
            ) as response:
                next_url = redirect_url(response, self._url, self._host, self._headers)
                if next_url is None:
                    self._has_response = True
                    return _result(response.status, await _body(response))
            self._url = next_url
        return self.failed(f"stopped after {MAX_REQUESTS} redirects")

    def failed(self, message: str, *, in_body: str | None = None) -> CheckResult:
        """A failed result. Raises CheckError if the response headers have arrived already."""
        if self._has_response:
            raise CheckError(in_body or message, state="failure")
        return CheckResult(success=False, output=f'Get "{self._url}": {message}')


def _result(status: int, body: str) -> CheckResult:
    if not 200 <= status < 400:
        # Without the body: events are visible to more users than the endpoint.
        output = f"HTTP probe failed with statuscode: {status}"
        return CheckResult(success=False, output=output)
    if status >= 300:
        output = f"Probe terminated redirects, Response body: {body}"
        return CheckResult(success=True, output=output, warning=True)
    return CheckResult(success=True, output=body)


async def _body(response: aiohttp.ClientResponse) -> str:
    body = bytearray()
    while len(body) < MAX_OUTPUT_BYTES:
        chunk = await response.content.read(MAX_OUTPUT_BYTES - len(body))
        if not chunk:
            break
        body += chunk
    return body.decode(errors="replace")
