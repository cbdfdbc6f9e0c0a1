"""Messages between a client and whoever it talks to, both ways, until one has had enough.

Each side is read only as fast as the other takes it, so little is ever held.
"""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress

import msgspec
from aiohttp import web

from podstatus.apiserver.http.errors import Problem
from podstatus.apiserver.http.messages import Message, Socket, Tunnel
from podstatus.apiserver.kubelet.kubelet_client import read_message, send_message
from podstatus.apiserver.kubelet.stream_options import ERROR_CHANNEL
from podstatus.base.net.sockets import enable_keepalive, is_connected

logger = logging.getLogger(__name__)

_NORMAL, _AWAY, _BROKEN = 1000, 1001, 1011
_NODE_SECONDS = 1.0
"""How long a node may take to say goodbye; then the connection is just closed."""
_LOOK_SECONDS = 5.0
_CLIENT_SECONDS = 3600.0
"""A client takes as long as whoever reads what it prints, and loses the rest afterwards."""


class ClientSocket:
    """The client's end of a WebSocket, as `exchange.Socket`."""

    def __init__(self, protocol: str) -> None:
        self._socket = web.WebSocketResponse(
            protocols=(protocol,), compress=False, timeout=_CLIENT_SECONDS
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


async def send_tunnel(request: web.BaseRequest, tunnel: Tunnel) -> web.StreamResponse:
    """Be in the middle, until it ends."""
    near = ClientSocket(tunnel.protocol)
    response = await near.accept(request)
    try:
        far = await tunnel.connect()
    except Problem as problem:
        with suppress(ConnectionError):
            await near.send(ERROR_CHANNEL + msgspec.json.encode(problem.document))
            await near.close(_NORMAL)
        return response
    await relay(near, far, _until_gone(request.transport))
    return response


async def _until_gone(transport: asyncio.BaseTransport | None) -> None:
    """Wait for a client to go: who is held up by the node is not read from, and so not heard."""
    enable_keepalive(transport)
    while is_connected(transport):  # noqa: ASYNC110 - the kernel tells nobody
        await asyncio.sleep(_LOOK_SECONDS)


async def relay(near: Socket, far: Socket, near_goes: Coroutine[None, None, None]) -> None:
    """Pass messages on between two, and to each how the other said goodbye.

    `near_goes` comes back when there is nobody at the near end any more.
    """
    there = asyncio.ensure_future(_pass_on(near, far))
    back = asyncio.ensure_future(_pass_on(far, near))
    goes = asyncio.ensure_future(near_goes)
    try:
        await asyncio.wait({there, back, goes}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        near_has_left = (there.done() or goes.done()) and not back.done()
        for way in (there, back, goes):
            way.cancel()
        await asyncio.wait({there, back, goes})
        await _goodbye(far, _AWAY, _NODE_SECONDS)
        code = _AWAY if near_has_left else _NORMAL if _ended(far) else _BROKEN
        await _goodbye(near, code, _CLIENT_SECONDS)


def _ended(far: Socket) -> bool:
    return far.close_code == _NORMAL


async def _pass_on(source: Socket, target: Socket) -> None:
    try:
        while (message := await source.receive()) is not None:
            await target.send(message)
    except ConnectionError as error:
        logger.debug("tunnel broken: error=%s", error)


async def _goodbye(socket: Socket, code: int, seconds: float) -> None:
    reason = b"the node hung up" if code == _BROKEN else b""
    with suppress(ConnectionError, TimeoutError):
        async with asyncio.timeout(seconds):
            await socket.close(code, reason)
