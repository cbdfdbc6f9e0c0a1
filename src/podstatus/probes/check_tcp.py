"""TCP checks: whether a port accepts connections.

Upstream: DoTCPProbe, pkg/probe/tcp/tcp.go v1.36.4. Unlike upstream, SO_LINGER is not set: with it,
close() may block for a second, which would stall the event loop.
"""

import asyncio
import socket

from podstatus.probes.decide.check_result import CheckResult
from podstatus.probes.resolver import (
    CONNECTION_REFUSED,
    HostResolver,
    dial_error_message,
    join_host_port,
)


async def check_tcp(host: str, port: int, *, seconds: float, resolver: HostResolver) -> CheckResult:
    """Open a connection within `seconds`, and close it."""
    try:
        async with asyncio.timeout(seconds):
            return await _connect(host, port, resolver)
    except OSError as error:  # includes TimeoutError
        return CheckResult(success=False, output=dial_error_message(host, port, error))


async def _connect(host: str, port: int, resolver: HostResolver) -> CheckResult:
    """Try all addresses of the host. Raises the error of the last one."""
    last_error = OSError(f"{host} has no address")
    for family, address in await resolver.resolve(host):
        with socket.socket(family, socket.SOCK_STREAM) as connection:
            connection.setblocking(False)
            try:
                await asyncio.get_running_loop().sock_connect(connection, (address, port))
            except TimeoutError:
                raise
            except OSError as error:
                last_error = error
                continue
            return _connection_result(connection, host, port)
    raise last_error


def _connection_result(connection: socket.socket, host: str, port: int) -> CheckResult:
    """Success, unless the socket is connected to itself.

    On the same machine, the kernel may assign the target port as the ephemeral source port; the
    socket then connects to itself (TCP simultaneous open).
    """
    if connection.getsockname() == connection.getpeername():
        return CheckResult(
            success=False, output=f"dial tcp {join_host_port(host, port)}: {CONNECTION_REFUSED}"
        )
    return CheckResult(success=True)
