"""DNS resolution in daemon threads, so that a hanging resolver cannot delay loop shutdown.

asyncio itself uses a thread pool that is joined when the loop ends: an unresponsive name server
would delay the exit of the program by half a minute.
"""

import asyncio
import socket
import threading

from aiohttp.abc import AbstractResolver, ResolveResult


class Resolver(AbstractResolver):
    """The system's resolver with a timeout. Raises OSError, as aiohttp expects."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of a host. Raises OSError."""
        loop = asyncio.get_running_loop()
        addresses: asyncio.Future[list[ResolveResult]] = loop.create_future()
        thread = threading.Thread(
            target=_resolve_in_thread, args=(loop, addresses, host, port, family), daemon=True
        )
        thread.start()
        try:
            async with asyncio.timeout(self._seconds):
                return await addresses
        except TimeoutError as error:
            raise OSError(
                None, f"no response from the name server in {self._seconds:g} s"
            ) from error

    async def close(self) -> None:
        """Do nothing: the resolver has no state."""


def _resolve_in_thread(
    loop: asyncio.AbstractEventLoop,
    future: "asyncio.Future[list[ResolveResult]]",
    host: str,
    port: int,
    family: socket.AddressFamily,
) -> None:
    addresses: list[ResolveResult] | None = None
    failure: OSError | None = None
    try:
        addresses = _addresses(host, port, family)
    except OSError as error:
        failure = error
    except UnicodeError as error:
        failure = OSError(None, f"not a host name: {error}")

    def set_result() -> None:
        if future.done():
            return
        if failure is not None:
            future.set_exception(failure)
        else:
            future.set_result(addresses or [])

    try:
        loop.call_soon_threadsafe(set_result)
    except RuntimeError:
        return  # the loop is closed


def _addresses(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
    results = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, family=family, flags=socket.AI_ADDRCONFIG
    )
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
