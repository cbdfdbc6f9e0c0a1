"""How a server of a container is asked by HTTP, for checks and for hooks.

Every request has a connection of its own, and nothing is sent that the target does not say.
Certificates are not verified: they are made for the name of a service, not for the address of a
pod. Names are looked up by `HostResolver`, not by the few threads that all others need.
"""

import socket

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from podstatus.probes.resolver import HostResolver

REDIRECT_STATUSES = frozenset((301, 302, 303, 307, 308))
MAX_REQUESTS = 10
"""One after the other, as far as redirects lead. Upstream's."""
_MAX_LINE_BYTES = 64 * 1024
"""Of a header. aiohttp's own limit of 8 KiB is less than servers are used to send."""
_SKIPPED_HEADERS = ("User-Agent", "Accept", "Accept-Encoding")
"""What aiohttp adds where nobody says otherwise."""


def http_session(resolver: HostResolver) -> aiohttp.ClientSession:
    """A session without a limit of time: whoever asks has one."""
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


class _AiohttpResolver(AbstractResolver):
    """Names, as aiohttp asks for them."""

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
