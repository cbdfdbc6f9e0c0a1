"""DNS resolution in daemon threads, at most one per name.

A probe may name a host whose DNS server never answers. The resolver of asyncio would then exhaust
the default thread pool, which the agent needs to write files.
"""

import ipaddress
import socket

from podstatus.base.daemon_thread import SharedCalls

HostAddress = tuple[socket.AddressFamily, str]


class HostResolver:
    """Resolves names with getaddrinfo. Not thread-safe: use from one event loop."""

    def __init__(self) -> None:
        self._lookups = SharedCalls()

    async def resolve(self, host: str) -> list[HostAddress]:
        """The addresses of a host name or IP literal. Raises OSError. There is no timeout."""
        try:
            version = ipaddress.ip_address(host).version
        except ValueError:
            return await self._lookups.run(_addresses, host)
        return [(socket.AF_INET if version == 4 else socket.AF_INET6, host)]


def _addresses(host: str) -> list[HostAddress]:
    try:
        infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        raise socket.gaierror(socket.EAI_NONAME, f"not a host name: {error}") from error
    return [(family, str(address[0])) for family, _, _, _, address in infos]
