"""A WebSocket of aiohttp, client or server side, as a `WebSocket`."""

import aiohttp
from aiohttp import WSMsgType, web

from podstatus.apiserver.http.messages import Message


class WebSocketConnection:
    """One side of a relayed stream."""

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
