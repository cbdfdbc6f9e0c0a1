"""HTTP client for checks and hooks.

Every request uses a new connection and sends only the headers of its target. Certificates are not
verified: they are issued for a service name, not for a pod IP. Names are resolved by
`HostResolver`, not by asyncio's thread pool, which the rest of the agent needs.
"""

import socket

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from multidict import CIMultiDict
from yarl import URL

from podstatus.probes.resolver import HostResolver

_REDIRECT_STATUSES = frozenset((301, 302, 303, 307, 308))
MAX_REQUESTS = 10
"""Maximum requests per check, including redirects. Upstream's value."""
_MAX_LINE_BYTES = 64 * 1024
"""Limit per header. The default of aiohttp, 8 KiB, is too small for some servers."""
_SKIPPED_HEADERS = ("User-Agent", "Accept", "Accept-Encoding")
"""Headers that aiohttp would add by default."""


def http_session(resolver: HostResolver) -> aiohttp.ClientSession:
    """A session without a timeout; callers set their own."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            force_close=True, ssl=False, resolver=_AiohttpResolver(resolver)
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=_SKIPPED_HEADERS,
        auto_decompress=False,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
        max_line_size=_MAX_LINE_BYTES,
        max_field_size=_MAX_LINE_BYTES,
    )


def redirect_url(
    response: aiohttp.ClientResponse, url: URL, host: str | None, headers: CIMultiDict[str]
) -> URL | None:
    """The URL to request next; None if there is no redirect, or if it leads to another host.

    Removes the Host header before an absolute URL: it applies to the first request only.
    Upstream: RedirectChecker, pkg/probe/http/http.go v1.36.4.
    """
    target = response.headers.get("Location", "")
    if response.status not in _REDIRECT_STATUSES or not target:
        return None  # other responses may have a Location that is no URL
    location = URL(target, encoded=True)
    if location.absolute:
        headers.popall("Host", None)
    next_url = url.join(location)
    return next_url if next_url.host == host else None


class _AiohttpResolver(AbstractResolver):
    """Adapts `HostResolver` to the interface of aiohttp."""

    def __init__(self, resolver: HostResolver) -> None:
        self._resolver = resolver

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host=address, port=port, family=of, proto=0, flags=0)
            for of, address in await self._resolver.resolve(host)
            if family in (socket.AF_UNSPEC, of)
        ]

    async def close(self) -> None:
        pass
