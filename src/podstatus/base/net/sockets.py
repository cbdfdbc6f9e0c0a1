"""Connection state and socket options.

A disconnect is not noticed while the connection is not being read, and a proxy stops reading from
one side while the other side accepts no data. So the TCP state is queried instead.
"""

import asyncio
import socket
import sys
from asyncio.trsock import TransportSocket
from collections.abc import Iterable
from contextlib import suppress

_ESTABLISHED = 1
_KEEP_ALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 6))
"""A vanished peer is detected after 90 seconds."""
_TCP_REPAIR = 19
"""Linux only; Python has no constant for it."""
_LOOP_ITERATIONS = 5
"""Iterations of the event loop until broken transports are detected and closed."""


def is_connected(transport: asyncio.BaseTransport | None) -> bool:
    """Return whether the TCP connection is established, as far as the kernel knows."""
    if transport is None or transport.is_closing():
        return False
    sock = transport_socket(transport)
    option = getattr(socket, "TCP_INFO", None)
    if sock is None or option is None:
        return True
    try:
        return sock.getsockopt(socket.IPPROTO_TCP, option, 1)[0] == _ESTABLISHED
    except OSError:
        return False


def enable_keepalive(transport: asyncio.BaseTransport | None) -> None:
    """Enable TCP keepalive, so that a vanished peer is detected within two minutes."""
    sock = transport_socket(transport)
    if sock is None:
        return
    for name, value in _KEEP_ALIVE:
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


def transport_socket(transport: asyncio.BaseTransport | None) -> TransportSocket | None:
    """Return the socket of a transport; None if the transport has released it."""
    if transport is None:
        return None
    try:
        sock: TransportSocket | None = transport.get_extra_info("socket")
    except AttributeError:
        # A TLS transport that was closed twice, in CPython 3.11.
        return None
    return sock


def close_silently(sock: socket.socket) -> None:
    """Make the close of a socket send no packet; the peer gets a reset when it sends data.

    Needs CAP_NET_ADMIN; without it, the close is an ordinary one.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, _TCP_REPAIR, 1)


async def shutdown_sockets(sockets: Iterable[TransportSocket | None]) -> None:
    """Shut down connections immediately. Get the sockets before the transports are closed.

    Returns when transports that were aborted before are closed, too. Closing a TLS transport would
    wait 30 s for a peer that sends no close_notify, and a transport that was closed twice cannot be
    aborted (CPython 3.11.2).
    """
    for sock in filter(None, sockets):
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
    for _ in range(_LOOP_ITERATIONS):
        await asyncio.sleep(0)
