"""The relay between the client's WebSocket and the kubelet's.

Each side is read only as fast as the other accepts messages, so little is buffered.
"""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress

import aiohttp
from aiohttp import WSMsgType, web

from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.http.messages import Message, WebSocket, WebSocketProxy
from podstatus.base.net.sockets import enable_keepalive, is_connected
from podstatus.kube.encoding.channel_frames import encode_frame, status_message

logger = logging.getLogger(__name__)

_NORMAL, _GOING_AWAY, _INTERNAL_ERROR = 1000, 1001, 1011
_BACKEND_CLOSE_SECONDS = 1.0
"""How long a kubelet may take to answer a close before the connection is dropped."""
_POLL_SECONDS = 5.0
_CLIENT_CLOSE_SECONDS = 3600.0
"""How long a client may take to read the rest: as long as the reader of its output."""


class WebSocketConnection:
    """A WebSocket of aiohttp, client or server side: one side of a relay."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse | web.WebSocketResponse) -> None:
        self._socket = socket

    @property
    def close_code(self) -> int | None:
        return self._socket.close_code

    async def receive(self) -> Message | None:
        message = await self._socket.receive()
        match message.type:
            case WSMsgType.BINARY | WSMsgType.TEXT:
                data: Message = message.data
                return data
            case WSMsgType.ERROR:
                raise ConnectionResetError(str(message.data))
        return None

    async def send(self, message: Message) -> None:
        if isinstance(message, str):
            await self._socket.send_str(message)
        else:
            await self._socket.send_bytes(message)

    async def close(self, code: int, reason: bytes = b"") -> None:
        await self._socket.close(code=code, message=reason)


async def serve_websocket(request: web.BaseRequest, proxied: WebSocketProxy) -> web.StreamResponse:
    """Accept the client's WebSocket, connect to the kubelet, and relay until either side closes."""
    response = web.WebSocketResponse(
        protocols=(proxied.protocol,) if proxied.protocol else (),
        compress=False,
        timeout=_CLIENT_CLOSE_SECONDS,
    )
    await response.prepare(request)
    client = WebSocketConnection(response)
    try:
        backend = await proxied.connect()
    except StatusError as problem:
        with suppress(ConnectionError):
            message = status_message(problem.document, proxied.protocol)
            await client.send(encode_frame(message, proxied.protocol))
            await client.close(_NORMAL)
        return response
    await proxy(client, backend, _wait_disconnected(request.transport))
    return response


async def _wait_disconnected(transport: asyncio.BaseTransport | None) -> None:
    """Wait until the client disconnects.

    While the kubelet does not accept messages, the client is not read from, so a disconnect would
    go unnoticed.
    """
    enable_keepalive(transport)
    while is_connected(transport):  # noqa: ASYNC110 - the kernel sends no notification
        await asyncio.sleep(_POLL_SECONDS)


async def proxy(
    client: WebSocket, backend: WebSocket, client_disconnected: Coroutine[None, None, None]
) -> None:
    """Relay messages in both directions until one side closes, then close the other.

    `client_disconnected` returns when the client's connection is gone.
    """
    upstream = asyncio.ensure_future(_copy_messages(client, backend))
    downstream = asyncio.ensure_future(_copy_messages(backend, client))
    disconnected = asyncio.ensure_future(client_disconnected)
    try:
        await asyncio.wait(
            {upstream, downstream, disconnected}, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        client_closed = (upstream.done() or disconnected.done()) and not downstream.done()
        for task in (upstream, downstream, disconnected):
            task.cancel()
        await asyncio.wait({upstream, downstream, disconnected})
        await _close_quietly(backend, _GOING_AWAY, _BACKEND_CLOSE_SECONDS)
        code = _NORMAL if backend.close_code == _NORMAL else _INTERNAL_ERROR
        code = _GOING_AWAY if client_closed else code
        await _close_quietly(client, code, _CLIENT_CLOSE_SECONDS)


async def _copy_messages(source: WebSocket, target: WebSocket) -> None:
    try:
        while (message := await source.receive()) is not None:
            await target.send(message)
    except ConnectionError as error:
        logger.debug("websocket relay failed: error=%s", error)


async def _close_quietly(socket: WebSocket, code: int, seconds: float) -> None:
    reason = b"the node closed the connection" if code == _INTERNAL_ERROR else b""
    with suppress(ConnectionError, TimeoutError):
        async with asyncio.timeout(seconds):
            await socket.close(code, reason)
