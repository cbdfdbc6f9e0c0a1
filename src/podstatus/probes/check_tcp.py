"""Check whether somebody accepts connections at a port.

Upstream: DoTCPProbe, pkg/probe/tcp/tcp.go v1.36.4. It sets SO_LINGER, with which closing a
connection may block for a second: not in an event loop.
"""

import asyncio
import socket

from podstatus.probes.check_result import CheckResult
from podstatus.probes.dial_error import CONNECTION_REFUSED, dial_error_message, join_host_port
from podstatus.probes.resolver import HostResolver


async def check_tcp(host: str, port: int, *, seconds: float, resolver: HostResolver) -> CheckResult:
    """Connect, and hang up."""
    try:
        async with asyncio.timeout(seconds):
            return await _connect(host, port, resolver)
    except OSError as error:  # a timeout is one too
        return CheckResult(success=False, output=dial_error_message(host, port, error))


async def _connect(host: str, port: int, resolver: HostResolver) -> CheckResult:
    """Raises what the last of its addresses said."""
    problem = OSError(f"{host} has no address")
    for family, address in await resolver.resolve(host):
        with socket.socket(family, socket.SOCK_STREAM) as connection:
            connection.setblocking(False)
            try:
                await asyncio.get_running_loop().sock_connect(connection, (address, port))
            except TimeoutError:
                raise
            except OSError as error:
                problem = error
                continue
            return _connection_result(connection, host, port)
    raise problem


def _connection_result(connection: socket.socket, host: str, port: int) -> CheckResult:
    """Somebody, or ourselves.

    A socket that asks for a free port of this very machine can be given the one that it is to
    connect to, and then reaches itself.
    """
    if connection.getsockname() == connection.getpeername():
        return CheckResult(
            success=False, output=f"dial tcp {join_host_port(host, port)}: {CONNECTION_REFUSED}"
        )
    return CheckResult(success=True)
