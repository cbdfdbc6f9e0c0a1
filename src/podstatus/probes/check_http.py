"""Check what an HTTP server answers.

Upstream: DoHTTPProbe and RedirectChecker, pkg/probe/http/http.go v1.36.4.
"""

import asyncio

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from podstatus.probes.check_result import MAX_OUTPUT_BYTES, CheckError, CheckResult
from podstatus.probes.dial_error import dial_error_message
from podstatus.probes.http_client import MAX_REQUESTS, REDIRECT_STATUSES, http_session
from podstatus.probes.http_target import HttpTarget
from podstatus.probes.resolver import HostResolver

_HEADERS_TIMEOUT = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
_BODY_TIMEOUT = (
    "context deadline exceeded (Client.Timeout or context cancellation while reading body)"
)


async def check_http(target: HttpTarget, *, seconds: float, resolver: HostResolver) -> CheckResult:
    """Ask, and follow redirects to the same host. Raises CannotCheckError."""
    asking = _HttpCheck(target)
    try:
        async with asyncio.timeout(seconds), http_session(resolver) as session:
            return await asking.run(session)
    except TimeoutError:
        return asking.failed(_HEADERS_TIMEOUT, in_body=_BODY_TIMEOUT)
    except aiohttp.ClientConnectorError as error:
        why = dial_error_message(error.host, error.port or 0, error.os_error)
        return asking.failed(why)
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return asking.failed(str(error) or type(error).__name__)


class _HttpCheck:
    """One check: where it has come to, for what is said if it goes no further."""

    def __init__(self, target: HttpTarget) -> None:
        self._first_url = self._url = URL(target.url, encoded=True)
        self._headers = CIMultiDict(target.headers)
        self._headers.setdefault("Connection", "close")
        self._has_response = False

    async def run(self, session: aiohttp.ClientSession) -> CheckResult:
        for _ in range(MAX_REQUESTS):
            async with session.get(
                self._url, headers=self._headers, allow_redirects=False
            ) as answer:
                onward = self._redirect_url(answer)
                if onward is None:
                    self._has_response = True
                    return _result(answer.status, await _body(answer))
            self._url = onward
        return self.failed(f"stopped after {MAX_REQUESTS} redirects")

    def failed(self, message: str, *, in_body: str | None = None) -> CheckResult:
        """The check has failed; unless the server has answered, and only the rest is missing."""
        if self._has_response:
            raise CheckError(in_body or message, state="failure")
        return CheckResult(success=False, output=f'Get "{self._url}": {message}')

    def _redirect_url(self, answer: aiohttp.ClientResponse) -> URL | None:
        """Where to ask next. Nobody is asked who is not the container's own host."""
        place = answer.headers.get("Location", "")
        if answer.status not in REDIRECT_STATUSES or not place:
            return None
        onward = URL(place, encoded=True)
        if onward.absolute:
            self._headers.popall("Host", None)  # it was meant for the first
        onward = self._url.join(onward)
        return onward if onward.host == self._first_url.host else None


def _result(status: int, body: str) -> CheckResult:
    if not 200 <= status < 400:
        # No body: whoever may read events may not be meant to read it.
        output = f"HTTP probe failed with statuscode: {status}"
        return CheckResult(success=False, output=output)
    if status >= 300:
        output = f"Probe terminated redirects, Response body: {body}"
        return CheckResult(success=True, output=output, warning=True)
    return CheckResult(success=True, output=body)


async def _body(answer: aiohttp.ClientResponse) -> str:
    kept = bytearray()
    while len(kept) < MAX_OUTPUT_BYTES:
        piece = await answer.content.read(MAX_OUTPUT_BYTES - len(kept))
        if not piece:
            break
        kept += piece
    return kept.decode(errors="replace")
