"""Check what an HTTP server answers.

Upstream: DoHTTPProbe and RedirectChecker, pkg/probe/http/http.go v1.36.4.
"""

import asyncio

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from podstatus.probes.check_result import MOST_OUTPUT, CannotCheckError, Checked
from podstatus.probes.dial_error import dial_words
from podstatus.probes.http_client import MOST_REQUESTS, REDIRECTS, http_session
from podstatus.probes.http_target import HttpTarget
from podstatus.probes.resolver import Names

_NO_HEADERS_IN_TIME = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
_NO_BODY_IN_TIME = (
    "context deadline exceeded (Client.Timeout or context cancellation while reading body)"
)


async def check_http(target: HttpTarget, *, seconds: float, names: Names) -> Checked:
    """Ask, and follow redirects to the same host. Raises CannotCheckError."""
    asking = _Asking(target)
    try:
        async with asyncio.timeout(seconds), http_session(names) as session:
            return await asking.ask(session)
    except TimeoutError:
        return asking.failed(_NO_HEADERS_IN_TIME, in_body=_NO_BODY_IN_TIME)
    except aiohttp.ClientConnectorError as error:
        why = dial_words(error.host, error.port or 0, error.os_error)
        return asking.failed(why)
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return asking.failed(str(error) or type(error).__name__)


class _Asking:
    """One check: where it has come to, for what is said if it goes no further."""

    def __init__(self, target: HttpTarget) -> None:
        self._first = self._url = URL(target.url, encoded=True)
        self._headers = CIMultiDict(target.headers)
        self._headers.setdefault("Connection", "close")
        self._is_answered = False

    async def ask(self, session: aiohttp.ClientSession) -> Checked:
        for _ in range(MOST_REQUESTS):
            async with session.get(
                self._url, headers=self._headers, allow_redirects=False
            ) as answer:
                onward = self._onward(answer)
                if onward is None:
                    self._is_answered = True
                    return _judged(answer.status, await _body(answer))
            self._url = onward
        return self.failed(f"stopped after {MOST_REQUESTS} redirects")

    def failed(self, why: str, *, in_body: str | None = None) -> Checked:
        """The check has failed; unless the server has answered, and only the rest is missing."""
        if self._is_answered:
            raise CannotCheckError(in_body or why, state="failure")
        return Checked(success=False, output=f'Get "{self._url}": {why}')

    def _onward(self, answer: aiohttp.ClientResponse) -> URL | None:
        """Where to ask next. Nobody is asked who is not the container's own host."""
        place = answer.headers.get("Location", "")
        if answer.status not in REDIRECTS or not place:
            return None
        onward = URL(place, encoded=True)
        if onward.absolute:
            self._headers.popall("Host", None)  # it was meant for the first
        onward = self._url.join(onward)
        return onward if onward.host == self._first.host else None


def _judged(status: int, body: str) -> Checked:
    if not 200 <= status < 400:
        # No body: whoever may read events may not be meant to read it.
        output = f"HTTP probe failed with statuscode: {status}"
        return Checked(success=False, output=output)
    if status >= 300:
        output = f"Probe terminated redirects, Response body: {body}"
        return Checked(success=True, output=output, doubtful=True)
    return Checked(success=True, output=body)


async def _body(answer: aiohttp.ClientResponse) -> str:
    kept = bytearray()
    while len(kept) < MOST_OUTPUT:
        piece = await answer.content.read(MOST_OUTPUT - len(kept))
        if not piece:
            break
        kept += piece
    return kept.decode(errors="replace")
