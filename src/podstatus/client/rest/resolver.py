"""DNS resolution in daemon threads, so that a hanging resolver cannot delay loop shutdown.

asyncio itself uses a thread pool that is joined when the loop ends: an unresponsive name server
would delay the exit of the program by half a minute.
"""

import asyncio
import socket

from aiohttp.abc import AbstractResolver, ResolveResult

from podstatus.base.daemon_thread import run_in_daemon_thread


class Resolver(AbstractResolver):
    """The system's resolver with a timeout. Raises OSError, as aiohttp expects."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of a host. Raises OSError."""
        try:
            async with asyncio.timeout(self._seconds):
                return await run_in_daemon_thread(_addresses, host, port, family)
        except TimeoutError as error:
            raise OSError(
                None, f"no response from the name server in {self._seconds:g} s"
            ) from error

    async def close(self) -> None:
        """Do nothing: the resolver has no state."""


def _addresses(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
    try:
        results = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, family=family, flags=socket.AI_ADDRCONFIG
        )
    except UnicodeError as error:
        raise OSError(None, f"not a host name: {error}") from error
    return [
        ResolveResult(
            hostname=host,
            host=str(address[0]),
            port=port,
            family=address_family,
            proto=protocol,
            flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
        )
        for address_family, _, protocol, _, address in results
    ]
