"""Check whether somebody accepts connections at a port.

Upstream: DoTCPProbe, pkg/probe/tcp/tcp.go v1.36.4. It sets SO_LINGER, with which closing a
connection may block for a second: not in an event loop.
"""

import asyncio
import socket

from podstatus.probes.check_result import Checked
from podstatus.probes.dial_error import REFUSED, dial_words, place
from podstatus.probes.resolver import Names


async def check_tcp(host: str, port: int, *, seconds: float, names: Names) -> Checked:
    """Connect, and hang up."""
    try:
        async with asyncio.timeout(seconds):
            return await _connect(host, port, names)
    except OSError as error:  # a timeout is one too
        return Checked(success=False, output=dial_words(host, port, error))


async def _connect(host: str, port: int, names: Names) -> Checked:
    """Raises what the last of its addresses said."""
    problem = OSError(f"{host} has no address")
    for family, address in await names.find(host):
        with socket.socket(family, socket.SOCK_STREAM) as connection:
            connection.setblocking(False)
            try:
                await asyncio.get_running_loop().sock_connect(connection, (address, port))
            except TimeoutError:
                raise
            except OSError as error:
                problem = error
                continue
            return _met(connection, host, port)
    raise problem


def _met(connection: socket.socket, host: str, port: int) -> Checked:
    """Somebody, or ourselves.

    A socket that asks for a free port of this very machine can be given the one that it is to
    connect to, and then reaches itself.
    """
    if connection.getsockname() == connection.getpeername():
        return Checked(success=False, output=f"dial tcp {place(host, port)}: {REFUSED}")
    return Checked(success=True)
