"""Whether somebody is still at the other end of a connection.

A client that has gone is not heard of while nobody reads from its connection, and nobody does
while somebody else does not take what it sends. So the state of the connection is looked at.
"""

import asyncio
import socket
import sys
from asyncio.trsock import TransportSocket
from collections.abc import Iterable
from contextlib import suppress

_ESTABLISHED = 1
_KEEP_ALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 6))
"""A machine that has vanished is noticed after a minute and a half."""
_TCP_REPAIR = 19
"""Of Linux; Python has no name for it."""
_LOOP_ITERATIONS = 5
"""Of the loop, until what is broken is noticed and closed."""


def is_connected(transport: asyncio.BaseTransport | None) -> bool:
    """Whether the other end is there, as far as this machine knows."""
    if transport is None or transport.is_closing():
        return False
    found = transport_socket(transport)
    option = getattr(socket, "TCP_INFO", None)
    if found is None or option is None:
        return True
    try:
        return found.getsockopt(socket.IPPROTO_TCP, option, 1)[0] == _ESTABLISHED
    except OSError:
        return False


def enable_keepalive(transport: asyncio.BaseTransport | None) -> None:
    """Have it noticed within two minutes if the other end vanishes."""
    found = transport_socket(transport)
    if found is None:
        return
    for name, value in _KEEP_ALIVE:
        option = getattr(socket, name, None)
        if option is not None:
            found.setsockopt(socket.IPPROTO_TCP, option, value)


def transport_socket(transport: asyncio.BaseTransport | None) -> TransportSocket | None:
    """What is below a transport; None if it has let go of that."""
    if transport is None:
        return None
    try:
        found: TransportSocket | None = transport.get_extra_info("socket")
    except AttributeError:
        # TLS that was closed twice, as CPython 3.11 has it.
        return None
    return found


def close_silently(sock: socket.socket) -> None:
    """Have a socket closed without a packet: the other end learns of it when it sends something.

    Needs CAP_NET_ADMIN; without it the close is visible, as usual.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, _TCP_REPAIR, 1)


async def shutdown_sockets(sockets: Iterable[TransportSocket | None]) -> None:
    """End connections without a goodbye; find their sockets before the transports are closed.

    Comes back when transports that were aborted before have been closed, too.
    TLS would wait half a minute for those that say none, and a transport that was closed twice
    cannot be aborted any more, as CPython 3.11.2 has it.
    """
    for found in filter(None, sockets):
        with suppress(OSError):
            found.shutdown(socket.SHUT_RDWR)
    for _ in range(_LOOP_ITERATIONS):
        await asyncio.sleep(0)
