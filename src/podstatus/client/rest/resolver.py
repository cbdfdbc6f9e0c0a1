"""Look up addresses in threads that nobody has to wait for.

asyncio's own way uses a pool whose threads are waited for when the loop ends, so a name server
that is silent would keep a program from ending for half a minute.
"""

import asyncio
import socket
import threading

from aiohttp.abc import AbstractResolver, ResolveResult


class Resolver(AbstractResolver):
    """The system's resolver, with a limit. Raises OSError, as aiohttp expects."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of a host."""
        loop = asyncio.get_running_loop()
        found: asyncio.Future[list[ResolveResult]] = loop.create_future()
        look_up = threading.Thread(
            target=_resolve_in_thread, args=(loop, found, host, port, family), daemon=True
        )
        look_up.start()
        try:
            async with asyncio.timeout(self._seconds):
                return await found
        except TimeoutError as error:
            raise OSError(None, f"no answer from the name server in {self._seconds:g} s") from error

    async def close(self) -> None:
        """Nothing is kept."""


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

    def tell() -> None:
        if future.done():
            return
        if failure is not None:
            future.set_exception(failure)
        else:
            future.set_result(addresses or [])

    try:
        loop.call_soon_threadsafe(tell)
    except RuntimeError:
        return  # the loop has ended; nobody asks any more


def _addresses(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
    told = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, family=family, flags=socket.AI_ADDRCONFIG
    )
    return [
        ResolveResult(
            hostname=host,
            host=str(address[0]),
            port=port,
            family=found_family,
            proto=protocol,
            flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
        )
        for found_family, _, protocol, _, address in told
    ]
