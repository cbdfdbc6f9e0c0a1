"""Exec and attach by the runtime's streaming server: a WebSocket with channels.

Only v5 of the protocol can end the input of a process; containerd before 2.0 has v4. There, input
is possible with a terminal only, which has a character for it: a command that reads to the end of
its input would wait for ever.

Differs from the port: a process goes on when its session is closed, until it ends or writes, as
with a kubelet. Commands of probes and hooks are not run this way.

Upstream: RemoteCommand, client-go v0.36.4, tools/remotecommand/websocket.go.
"""

import asyncio
from typing import Final

import aiohttp
import msgspec

from podstatus.base.msgspec_json import decode_json
from podstatus.kube.encoding.channel_frames import V4, V5, ChannelNumber
from podstatus.runtime.streams import (
    OutputStream,
    StreamOptions,
    StreamUnavailableError,
    TerminalSize,
)

_CONNECT_SECONDS: Final = 30.0
_MAX_MESSAGE_BYTES: Final = 1024 * 1024
_MAX_INPUT_BYTES: Final = 32 * 1024
"""Input per message, as kubectl's."""
_MAX_QUEUED: Final = 16
"""Chunks of output that are not read yet; with more, the runtime is not read either."""
_END_OF_TRANSMISSION: Final = b"\x04"
_OUTPUTS: Final[dict[int, OutputStream]] = {
    ChannelNumber.STDOUT: OutputStream.STDOUT,
    ChannelNumber.STDERR: OutputStream.STDERR,
}
_EXIT_CODE: Final = "ExitCode"


class _Cause(msgspec.Struct):
    reason: str = ""
    message: str = ""


class _Details(msgspec.Struct):
    causes: list[_Cause] = []


class _Result(msgspec.Struct):
    """The `v1.Status` at the end of a session."""

    status: str = ""
    message: str = ""
    details: _Details | None = None


async def open_session(url: str, request: StreamOptions) -> "WebSocketSession":
    """Connect to the address that Exec or Attach returned. Raises StreamUnavailableError."""
    client = aiohttp.ClientSession()
    try:
        socket = await _connect(client, url)
        _check_input(request, socket.protocol)
    except BaseException:
        await client.close()
        raise
    return WebSocketSession(client, socket, request)


def _check_input(request: StreamOptions, protocol: str | None) -> None:
    if request.stdin and not request.tty and protocol != V5:
        raise StreamUnavailableError(
            "this container runtime cannot end the input of a command (containerd before 2.0); "
            "use a terminal (kubectl exec -it), or leave out -i"
        )


async def _connect(
    client: aiohttp.ClientSession, url: str
) -> "aiohttp.ClientWebSocketResponse[bool]":
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            return await client.ws_connect(url, protocols=(V5, V4), max_msg_size=_MAX_MESSAGE_BYTES)
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise StreamUnavailableError(
            f"cannot connect to the streaming server of the container runtime: {error}"
        ) from error


class WebSocketSession:
    """A session of exec or attach; see `runtime.streams.ProcessStream`."""

    def __init__(
        self,
        client: aiohttp.ClientSession,
        socket: "aiohttp.ClientWebSocketResponse[bool]",
        request: StreamOptions,
    ) -> None:
        self._client = client
        self._socket = socket
        self._request = request
        self._output: asyncio.Queue[tuple[OutputStream, bytes] | None]
        self._output = asyncio.Queue(_MAX_QUEUED)
        self._result = _Result()
        self._ended = asyncio.Event()
        self._receiving = asyncio.create_task(self._receive())
        self._resizing: set[asyncio.Task[None]] = set()

    async def read(self) -> tuple[OutputStream, bytes] | None:
        """Return the next chunk of output; None at the end."""
        return await self._output.get()

    async def write(self, data: bytes) -> None:
        """Write to standard input, in messages as large as those of kubectl."""
        for start in range(0, len(data), _MAX_INPUT_BYTES):
            await self._send(ChannelNumber.STDIN, data[start : start + _MAX_INPUT_BYTES])

    async def close_stdin(self) -> None:
        """Close standard input; on a terminal, send the end-of-file character."""
        if self._socket.protocol == V5:
            await self._send(ChannelNumber.CLOSE, bytes([ChannelNumber.STDIN]))
        elif self._request.tty:
            await self._send(ChannelNumber.STDIN, _END_OF_TRANSMISSION)

    def resize(self, size: TerminalSize) -> None:
        document = msgspec.json.encode({"Width": size.columns, "Height": size.rows})
        task = asyncio.create_task(self._send(ChannelNumber.RESIZE, document))
        self._resizing.add(task)
        task.add_done_callback(self._resizing.discard)

    async def wait(self) -> int:
        """Wait for the end; return the exit code. Raises StreamUnavailableError without one."""
        await self._ended.wait()
        if self._result.status == "Success":
            return 0
        causes = self._result.details.causes if self._result.details is not None else []
        for cause in causes:
            if cause.reason == _EXIT_CODE and cause.message.isdecimal():
                return int(cause.message)
        raise StreamUnavailableError(self._result.message)

    async def close(self) -> None:
        """Close the connection; the process goes on."""
        self._receiving.cancel()
        for task in self._resizing:
            task.cancel()
        await self._socket.close()
        await self._client.close()

    async def _send(self, channel: ChannelNumber, data: bytes) -> None:
        # The process may have ended just now.
        if not self._socket.closed:
            await self._socket.send_bytes(bytes([channel]) + data)

    async def _receive(self) -> None:
        """Queue the output, and note the result."""
        self._result = _Result(message="the container runtime closed the connection")
        try:
            async for message in self._socket:
                if message.type is aiohttp.WSMsgType.BINARY and message.data:
                    await self._accept(message.data[0], message.data[1:])
        finally:
            self._ended.set()
        await self._output.put(None)

    async def _accept(self, channel: int, data: bytes) -> None:
        if channel == ChannelNumber.ERROR:
            try:
                self._result = decode_json(data, _Result)
            except msgspec.MsgspecError as error:
                self._result = _Result(message=f"malformed result: {error}")
        elif channel in _OUTPUTS and data:
            await self._output.put((_OUTPUTS[channel], data))
