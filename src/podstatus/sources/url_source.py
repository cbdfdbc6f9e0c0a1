"""Static pods out of a manifest at a URL.

Upstream: sourceURL, pkg/kubelet/config/http.go v1.36.4. Unlike there, an answer that is empty or
wrong takes no pods away: docs/decisions/0018-broken-manifests.md.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import aiohttp
from yarl import URL

from podstatus.base.aio import SystemClock
from podstatus.base.clock import Clock
from podstatus.base.daemon_thread import run_in_daemon_thread
from podstatus.kube.objects.pod import Pod
from podstatus.kube.scalars.time import Time
from podstatus.sources.manifest.decode import MAX_BYTES, Manifest, ManifestProblem, read_manifest
from podstatus.sources.manifest.static_pods import ManifestOrigin
from podstatus.sources.manifest_cache import ManifestCache, OnProblem, ignore_problem

SOURCE: Final = "http"
TIMEOUT_SECONDS = 10.0
"""Upstream: NewSourceURL, http.go v1.36.4."""
_MAX_REDIRECTS = 10
_REDIRECT_STATUSES = (301, 302, 303, 307, 308)


class UrlSource:
    """Delivers all pods of a URL, once they were read and whenever they change.

    `headers` are sent to this server alone, and are never shown.
    """

    def __init__(
        self,
        url: str,
        node_name: str,
        deliver: Callable[[Iterable[Pod]], None],
        *,
        headers: Sequence[tuple[str, str]] = (),
        clock: Clock | None = None,
        period: float = 20.0,
        on_problem: OnProblem = ignore_problem,
        heartbeat: Callable[[], None] = lambda: None,
    ) -> None:
        self._url = _parse_url(url)
        self._headers = tuple(headers)
        self._origin = ManifestOrigin(
            source=SOURCE, location=redact_manifest_url(self._url), node_name=node_name
        )
        self._deliver = deliver
        self._clock = clock or SystemClock()
        self._period = period
        self._heartbeat = heartbeat
        self._cache = ManifestCache(on_problem)
        self._data: bytes | None = None
        self._delivered: tuple[Pod, ...] | None = None

    async def run(self) -> None:
        """Read it again and again, until cancelled."""
        while True:
            self._heartbeat()
            await self.read_once()
            await self._clock.wait(self._period)

    async def read_once(self) -> None:
        """Read it, and deliver if pods have changed."""
        try:
            data = await self._fetch()
        except _FetchError as error:
            self._record_error(str(error))
            return
        if data != self._data:
            now = Time.from_unix_nanos(self._clock.now())
            # In a thread: a large one takes its time.
            manifest = await run_in_daemon_thread(read_manifest, data, self._origin, now)
            self._apply(data, manifest)

    def _apply(self, data: bytes, manifest: Manifest) -> None:
        self._data = data
        self._cache.update(self._origin.location, manifest)
        pods = self._cache.pods()
        if not pods and data and manifest.problems:
            return  # nobody has said yet what is to run, or that nothing is
        if pods != self._delivered:
            self._delivered = pods
            self._deliver(pods)

    def _record_error(self, message: str) -> None:
        self._data = None
        problem = ManifestProblem(location=self._origin.location, message=message)
        self._cache.update(self._origin.location, Manifest(problems=(problem,)))

    async def _fetch(self) -> bytes:
        """What is at the URL. Raises _FetchError."""
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
        try:
            async with (
                asyncio.timeout(TIMEOUT_SECONDS),
                aiohttp.ClientSession(
                    timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()
                ) as session,
            ):
                return await self._follow_redirects(session)
        except TimeoutError:
            raise _FetchError(f"there was no answer within {TIMEOUT_SECONDS:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _FetchError(f"it cannot be read: {_describe_error(error)}") from None

    async def _follow_redirects(self, session: aiohttp.ClientSession) -> bytes:
        url = self._url
        for _ in range(_MAX_REDIRECTS):
            # Who is told what we know: the server that was named, and no other one.
            headers = self._headers if url.origin() == self._url.origin() else ()
            async with session.get(url, headers=headers, allow_redirects=False) as answer:
                if answer.status not in _REDIRECT_STATUSES:
                    return await _body(answer)
                url = _next(url, answer.headers.get("Location", ""))
        raise _FetchError(f"it leads on more than {_MAX_REDIRECTS} times")


class _FetchError(Exception):
    """The manifest could not be had; the message says why, without secrets."""


async def _body(answer: aiohttp.ClientResponse) -> bytes:
    if answer.status != 200:
        raise _FetchError(f"the server answers {answer.status} {answer.reason}")
    data = bytearray()
    async for part in answer.content.iter_any():
        data += part
        if len(data) > MAX_BYTES:
            raise _FetchError(f"it is larger than {MAX_BYTES // 2**20} MiB")
    return bytes(data)


def _next(url: URL, location: str) -> URL:
    target = url.join(URL(location))
    if not location or target.scheme != url.scheme:
        raise _FetchError(f"it leads to another scheme, {target.scheme!r}; name that URL itself")
    return target


def _parse_url(text: str) -> URL:
    url = URL(text)
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError(
            f"{redact_manifest_url(url)!r} is no URL of a manifest; it begins with http://"
        )
    return url


def redact_manifest_url(url: URL) -> str:
    """The URL without what may be a secret: a user and the query."""
    if not url.host:
        return url.path
    bare = url.with_user(None).with_query(None).with_fragment(None)
    return f"{bare}?…" if url.query_string else str(bare)


def _describe_error(error: Exception) -> str:
    """What went wrong, in one line without the URL."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return error.os_error.strerror or type(error.os_error).__name__
    return type(error).__name__
