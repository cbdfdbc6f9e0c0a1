"""The transport below a client's WebSocket: aiohttp has no public way to it."""

import asyncio

import aiohttp


def transport_of(socket: aiohttp.ClientWebSocketResponse) -> asyncio.Transport:
    """What the messages of a WebSocket go over, to abort it or to close its socket."""
    connection = socket._conn  # noqa: SLF001 - see above
    assert connection is not None
    assert connection.transport is not None
    return connection.transport
