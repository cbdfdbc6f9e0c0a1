"""Static pods from a manifest at a URL.

Upstream: sourceURL, pkg/kubelet/config/http.go v1.36.4. Unlike upstream, an empty or invalid
response removes no pods: docs/decisions/0018-broken-manifests.md.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import aiohttp
from yarl import URL

from podstatus.base.clock import Clock
from podstatus.base.daemon_thread import run_in_daemon_thread
from podstatus.kube.objects.pod import Pod
from podstatus.kube.scalars.time import Time
from podstatus.sources.manifest.decode import MAX_BYTES, Manifest, ManifestProblem, read_manifest
from podstatus.sources.manifest.static_pods import ManifestOrigin
from podstatus.sources.manifest_cache import ManifestCache, OnProblem

SOURCE: Final = "http"
TIMEOUT_SECONDS = 10.0
"""Upstream: NewSourceURL, http.go v1.36.4."""
_MAX_REDIRECTS = 10
_REDIRECT_STATUSES = (301, 302, 303, 307, 308)


class UrlSource:
    """Delivers all pods of a URL: after the first read, then at every change.

    `headers` are sent to the origin of this URL only, and are never logged.
    """

    def __init__(
        self,
        url: str,
        node_name: str,
        deliver: Callable[[Iterable[Pod]], None],
        *,
        clock: Clock,
        on_problem: OnProblem,
        heartbeat: Callable[[], None],
        headers: Sequence[tuple[str, str]] = (),
        period: float = 20.0,
    ) -> None:
        self._url = _parse_url(url)
        self._headers = tuple(headers)
        self._origin = ManifestOrigin(
            source=SOURCE, location=redact_manifest_url(self._url), node_name=node_name
        )
        self._deliver = deliver
        self._clock = clock
        self._period = period
        self._heartbeat = heartbeat
        self._cache = ManifestCache(on_problem)
        self._data: bytes | None = None
        self._delivered: tuple[Pod, ...] | None = None

    async def run(self) -> None:
        """Read the URL every `period` seconds until cancelled."""
        while True:
            self._heartbeat()
            await self.read_once()
            await self._clock.wait(self._period)

    async def read_once(self) -> None:
        """Read the URL; deliver if the pods have changed."""
        try:
            data = await self._fetch()
        except _FetchError as error:
            self._record_error(str(error))
            return
        if data != self._data:
            now = Time.from_unix_nanos(self._clock.now())
            # In a thread: a large manifest takes long to decode.
            manifest = await run_in_daemon_thread(read_manifest, data, self._origin, now)
            self._apply(data, manifest)

    def _apply(self, data: bytes, manifest: Manifest) -> None:
        self._data = data
        self._cache.update(self._origin.location, manifest)
        pods = self._cache.pods()
        if not pods and data and manifest.problems:
            return  # no valid manifest yet: the desired pods are unknown
        if pods != self._delivered:
            self._delivered = pods
            self._deliver(pods)

    def _record_error(self, message: str) -> None:
        self._data = None
        problem = ManifestProblem(location=self._origin.location, message=message)
        self._cache.update(self._origin.location, Manifest(problems=(problem,)))

    async def _fetch(self) -> bytes:
        """The content of the URL. Raises _FetchError."""
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
            raise _FetchError(f"no response within {TIMEOUT_SECONDS:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _FetchError(f"cannot be read: {_describe_error(error)}") from None

    async def _follow_redirects(self, session: aiohttp.ClientSession) -> bytes:
        url = self._url
        for _ in range(_MAX_REDIRECTS):
            # Never send the headers, which may hold credentials, to another origin.
            headers = self._headers if url.origin() == self._url.origin() else ()
            async with session.get(url, headers=headers, allow_redirects=False) as response:
                if response.status not in _REDIRECT_STATUSES:
                    return await _body(response)
                url = _next(url, response.headers.get("Location", ""))
        raise _FetchError(f"more than {_MAX_REDIRECTS} redirects")


class _FetchError(Exception):
    """The manifest could not be fetched; the message contains no secrets."""


async def _body(response: aiohttp.ClientResponse) -> bytes:
    if response.status != 200:
        raise _FetchError(f"the server returned {response.status} {response.reason}")
    data = bytearray()
    async for part in response.content.iter_any():
        data += part
        if len(data) > MAX_BYTES:
            raise _FetchError(f"larger than {MAX_BYTES // 2**20} MiB")
    return bytes(data)


def _next(url: URL, location: str) -> URL:
    target = url.join(URL(location))
    if not location or target.scheme != url.scheme:
        raise _FetchError(
            f"redirect to another scheme, {target.scheme!r}; configure that URL instead"
        )
    return target


def _parse_url(text: str) -> URL:
    url = URL(text)
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError(
            f"invalid manifest URL {redact_manifest_url(url)!r}; use http:// or https://"
        )
    return url


def redact_manifest_url(url: URL) -> str:
    """The URL without possible secrets: user info and query."""
    if not url.host:
        return url.path
    bare = url.with_user(None).with_query(None).with_fragment(None)
    return f"{bare}?…" if url.query_string else str(bare)


def _describe_error(error: Exception) -> str:
    """The error in one line, without the URL."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return error.os_error.strerror or type(error.os_error).__name__
    return type(error).__name__
