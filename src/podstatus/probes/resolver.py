"""DNS resolution in daemon threads, at most one per name.

A probe may name a host whose DNS server never answers. The resolver of asyncio would then exhaust
the default thread pool, which the agent needs to write files.
"""

import asyncio
import ipaddress
import socket
import threading

HostAddress = tuple[socket.AddressFamily, str]


class HostResolver:
    """Resolves names with getaddrinfo. Not thread-safe: use from one event loop."""

    def __init__(self) -> None:
        self._pending: dict[str, asyncio.Future[list[HostAddress] | OSError]] = {}

    async def resolve(self, host: str) -> list[HostAddress]:
        """The addresses of a host name or IP literal. Raises OSError. There is no timeout."""
        try:
            version = ipaddress.ip_address(host).version
        except ValueError:
            result = await asyncio.shield(self._pending_lookup(host))
            if isinstance(result, OSError):
                raise result from None
            return result
        return [(socket.AF_INET if version == 4 else socket.AF_INET6, host)]

    def _pending_lookup(self, host: str) -> "asyncio.Future[list[HostAddress] | OSError]":
        """The result of the lookup in progress, shared by all callers."""
        if host not in self._pending:
            loop = asyncio.get_running_loop()
            threading.Thread(target=self._run_lookup, args=(loop, host), daemon=True).start()
            # Set after start(): if no thread can be started, the next call retries.
            self._pending[host] = loop.create_future()
        return self._pending[host]

    def _run_lookup(self, loop: asyncio.AbstractEventLoop, host: str) -> None:
        result = _addresses(host)
        try:
            loop.call_soon_threadsafe(self._complete, host, result)
        except RuntimeError:
            return  # the loop is closed

    def _complete(self, host: str, result: list[HostAddress] | OSError) -> None:
        self._pending.pop(host).set_result(result)


def _addresses(host: str) -> list[HostAddress] | OSError:
    try:
        infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        return error
    except UnicodeError as error:
        return socket.gaierror(socket.EAI_NONAME, f"not a host name: {error}")
    return [(family, str(address[0])) for family, _, _, _, address in infos]
