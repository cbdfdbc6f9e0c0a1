"""Messages between a client and whoever it talks to, both ways, until one has had enough.

Each side is read only as fast as the other takes it, so little is ever held.
"""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress

import msgspec
from aiohttp import web

from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.http.messages import Message, WebSocket, WebSocketProxy
from podstatus.apiserver.kubelet.kubelet_client import read_message, send_message
from podstatus.apiserver.kubelet.stream_options import ERROR_CHANNEL
from podstatus.base.net.sockets import enable_keepalive, is_connected

logger = logging.getLogger(__name__)

_NORMAL, _GOING_AWAY, _INTERNAL_ERROR = 1000, 1001, 1011
_BACKEND_CLOSE_SECONDS = 1.0
"""How long a node may take to say goodbye; then the connection is just closed."""
_POLL_SECONDS = 5.0
_CLIENT_CLOSE_SECONDS = 3600.0
"""A client takes as long as whoever reads what it prints, and loses the rest afterwards."""


class ClientWebSocket:
    """The client's end of a WebSocket, as `exchange.Socket`."""

    def __init__(self, protocol: str) -> None:
        self._socket = web.WebSocketResponse(
            protocols=(protocol,), compress=False, timeout=_CLIENT_CLOSE_SECONDS
        )

    async def accept(self, request: web.BaseRequest) -> web.StreamResponse:
        """Begin to speak; the answer to the request."""
        await self._socket.prepare(request)
        return self._socket

    @property
    def close_code(self) -> int | None:
        """What the client said when it left."""
        return self._socket.close_code

    async def receive(self) -> Message | None:
        """The next message; None when the client has had enough. Raises ConnectionError."""
        return read_message(await self._socket.receive())

    async def send(self, message: Message) -> None:
        """Hand over a message, as fast as it is taken. Raises ConnectionError."""
        await send_message(self._socket, message)

    async def close(self, code: int, reason: bytes = b"") -> None:
        """Say goodbye."""
        await self._socket.close(code=code, message=reason)


async def serve_websocket(request: web.BaseRequest, proxied: WebSocketProxy) -> web.StreamResponse:
    """Be in the middle, until it ends."""
    near = ClientWebSocket(proxied.protocol)
    response = await near.accept(request)
    try:
        far = await proxied.connect()
    except StatusError as problem:
        with suppress(ConnectionError):
            await near.send(ERROR_CHANNEL + msgspec.json.encode(problem.document))
            await near.close(_NORMAL)
        return response
    await proxy(near, far, _wait_disconnected(request.transport))
    return response


async def _wait_disconnected(transport: asyncio.BaseTransport | None) -> None:
    """Wait for a client to go: who is held up by the node is not read from, and so not heard."""
    enable_keepalive(transport)
    while is_connected(transport):  # noqa: ASYNC110 - the kernel tells nobody
        await asyncio.sleep(_POLL_SECONDS)


async def proxy(
    client: WebSocket, backend: WebSocket, client_disconnected: Coroutine[None, None, None]
) -> None:
    """Pass messages on between two, and to each how the other said goodbye.

    `client_disconnected` comes back when there is nobody at the near end any more.
    """
    there = asyncio.ensure_future(_copy_messages(client, backend))
    back = asyncio.ensure_future(_copy_messages(backend, client))
    goes = asyncio.ensure_future(client_disconnected)
    try:
        await asyncio.wait({there, back, goes}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        near_has_left = (there.done() or goes.done()) and not back.done()
        for way in (there, back, goes):
            way.cancel()
        await asyncio.wait({there, back, goes})
        await _close_quietly(backend, _GOING_AWAY, _BACKEND_CLOSE_SECONDS)
        code = (
            _GOING_AWAY
            if near_has_left
            else _NORMAL
            if _closed_normally(backend)
            else _INTERNAL_ERROR
        )
        await _close_quietly(client, code, _CLIENT_CLOSE_SECONDS)


def _closed_normally(backend: WebSocket) -> bool:
    return backend.close_code == _NORMAL


async def _copy_messages(source: WebSocket, target: WebSocket) -> None:
    try:
        while (message := await source.receive()) is not None:
            await target.send(message)
    except ConnectionError as error:
        logger.debug("tunnel broken: error=%s", error)


async def _close_quietly(socket: WebSocket, code: int, seconds: float) -> None:
    reason = b"the node hung up" if code == _INTERNAL_ERROR else b""
    with suppress(ConnectionError, TimeoutError):
        async with asyncio.timeout(seconds):
            await socket.close(code, reason)
