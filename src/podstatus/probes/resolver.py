"""Find the addresses of hosts that probes name, in threads that nobody has to wait for.

Pods are asked at their address; who names a host instead may name one of which no name server
ever says a word. asyncio's own way would then use up the few threads that all others of the
agent need too, to write their files. Here, at most one thread waits for each name.
"""

import asyncio
import ipaddress
import socket
import threading

HostAddress = tuple[socket.AddressFamily, str]


class HostResolver:
    """The system's resolver. For one event loop."""

    def __init__(self) -> None:
        self._pending: dict[str, asyncio.Future[list[HostAddress] | OSError]] = {}

    async def resolve(self, host: str) -> list[HostAddress]:
        """The addresses of a host, or the one that it is. Raises OSError; has no limit in time."""
        try:
            version = ipaddress.ip_address(host).version
        except ValueError:
            found = await asyncio.shield(self._pending_lookup(host))
            if isinstance(found, OSError):
                raise found from None
            return found
        return [(socket.AF_INET if version == 4 else socket.AF_INET6, host)]

    def _pending_lookup(self, host: str) -> "asyncio.Future[list[HostAddress] | OSError]":
        """The answer to come, for all who wait for it."""
        if host not in self._pending:
            loop = asyncio.get_running_loop()
            threading.Thread(target=self._run_lookup, args=(loop, host), daemon=True).start()
            # After it: for want of a thread, the next one who asks tries again.
            self._pending[host] = loop.create_future()
        return self._pending[host]

    def _run_lookup(self, loop: asyncio.AbstractEventLoop, host: str) -> None:
        found = _addresses(host)
        try:
            loop.call_soon_threadsafe(self._complete, host, found)
        except RuntimeError:
            return  # the loop has ended; nobody asks any more

    def _complete(self, host: str, found: list[HostAddress] | OSError) -> None:
        self._pending.pop(host).set_result(found)


def _addresses(host: str) -> list[HostAddress] | OSError:
    try:
        told = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        return error
    except UnicodeError as error:
        return socket.gaierror(socket.EAI_NONAME, f"not a host name: {error}")
    return [(family, str(address[0])) for family, _, _, _, address in told]
