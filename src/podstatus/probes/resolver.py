"""DNS resolution in daemon threads, at most one per name; connection errors in the kubelet's words.

A probe may name a host whose DNS server never answers. The resolver of asyncio would then exhaust
the default thread pool, which the agent needs to write files.
"""

import ipaddress
import os
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


CONNECTION_REFUSED = "connect: connection refused"
IO_TIMEOUT = "i/o timeout"


def join_host_port(host: str, port: int) -> str:
    """host:port, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def dial_error_message(host: str, port: int, error: OSError) -> str:
    """The error of a failed connection to host:port, as Go words it."""
    if isinstance(error, TimeoutError):
        return f"dial tcp {join_host_port(host, port)}: {IO_TIMEOUT}"
    if isinstance(error, socket.gaierror):
        return f"dial tcp: lookup {host}: {(error.strerror or str(error)).lower()}"
    # asyncio's own message names the call instead of the cause.
    cause = os.strerror(error.errno).lower() if error.errno else str(error)
    return f"dial tcp {join_host_port(host, port)}: connect: {cause}"
