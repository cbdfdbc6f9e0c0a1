"""Relay the streams of a process over a WebSocket: exec and attach.

Upstream: createWebSocketStreams, apiserver/pkg/util/proxy/websocket.go v0.36.4; ServeExec and
ServeAttach, cri-streaming v0.36.4.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from aiohttp import WSCloseCode, WSMsgType, web

from podstatus.kube.encoding.channel_frames import encode_frame
from podstatus.runtime.streams import ProcessStream, StreamOptions, StreamUnavailableError
from podstatus.web.kubelet.channel_protocol import (
    ProtocolError,
    Resize,
    StdinClosed,
    StdinData,
    exit_message,
    failure_message,
    hello_frame,
    is_requested,
    output_message,
    read_message,
)
from podstatus.web.kubelet.idle_timeout import IdleTimeout

logger = logging.getLogger(__name__)

OpenStream = Callable[[], Awaitable[ProcessStream]]
"""Start the process, or attach to it. Raises StreamUnavailableError."""

MAX_MESSAGE_BYTES = 2**20
"""Of a client's message; kubectl sends 32 KiB at a time."""
_MAX_QUEUED_INPUT = 8
"""Messages for a process that does not read; then the client's messages are not read either."""
CLOSE_SECONDS = 10.0
"""For the client to read the final message and to complete the closing handshake."""


class ExecSession:
    """One exec or attach session over one WebSocket."""

    def __init__(
        self,
        socket: web.WebSocketResponse,
        options: StreamOptions,
        protocol: str,
        idle_timeout: IdleTimeout,
        *,
        attached: bool = False,
    ) -> None:
        """`attached`: to the container's own process, whose exit is reported in the pod status."""
        self._socket = socket
        self._options = options
        self._protocol = protocol
        self._idle_timeout = idle_timeout
        self._attached = attached
        self._input: asyncio.Queue[StdinData | StdinClosed] = asyncio.Queue(_MAX_QUEUED_INPUT)

    async def run(self, open_stream: OpenStream) -> None:
        """Relay until the process exits, the client disconnects, or the idle timeout expires."""
        await self._send(hello_frame(self._options))
        stream = await self._open(open_stream)
        if stream is None:
            return
        try:
            final_message = await self._relay(stream)
            if final_message is not None:
                await self._close(final_message)
        finally:
            # Shielded: the process must not outlive a cancelled session.
            await asyncio.shield(stream.close())

    async def _open(self, open_stream: OpenStream) -> ProcessStream | None:
        try:
            return await open_stream()
        except StreamUnavailableError as error:
            await self._close(self._failure(str(error)))
        except Exception as error:
            # A third-party runtime may raise anything: the client and the log get it.
            logger.exception("cannot start exec session")
            await self._close(self._failure(f"{type(error).__name__}: {error}"))
        return None

    async def _relay(self, stream: ProcessStream) -> bytes | None:
        """Relay all streams, and return the final message; None if the client has disconnected."""
        tasks = [
            asyncio.create_task(self._relay_output(stream), name="output"),
            asyncio.create_task(self._relay_input(stream), name="input"),
            asyncio.create_task(self._receive(stream), name="listen"),
            asyncio.create_task(self._watch_idle(), name="idle"),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            # In this order: if both are done, the exit of the process wins over a disconnect.
            return self._final_message(next(task for task in tasks if task in done))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _final_message(self, task: "asyncio.Task[bytes | None]") -> bytes | None:
        error = task.exception()
        if error is None:
            return task.result()
        if isinstance(error, ConnectionError):
            return None
        logger.warning("exec session failed: error=%r", error)
        return self._failure(f"{type(error).__name__}: {error}")

    async def send_failure(self, reason: str) -> None:
        """Send the final message of a session that failed for this reason."""
        await self._send(self._failure(reason))

    def _failure(self, reason: str) -> bytes:
        what = "attaching to container" if self._attached else "executing command in container"
        return failure_message(f"error {what}: {reason}", self._protocol)

    async def _watch_idle(self) -> bytes | None:
        logger.info("exec session ended: reason=%s", await self._idle_timeout.wait_idle())
        return None

    async def _relay_output(self, stream: ProcessStream) -> bytes:
        while (chunk := await stream.read()) is not None:
            channel, data = chunk
            if data and is_requested(channel, self._options):
                await self._send(output_message(channel, data))
                self._idle_timeout.touch()
        code = await stream.wait()
        return exit_message(0 if self._attached else code, self._protocol)

    async def _receive(self, stream: ProcessStream) -> bytes | None:
        """Read the client's messages until it disconnects."""
        async for frame in self._socket:
            self._idle_timeout.touch()
            if frame.type not in (WSMsgType.BINARY, WSMsgType.TEXT):
                continue
            message = read_message(frame.data, self._protocol)
            if isinstance(message, Resize):
                stream.resize(message.size)
            elif isinstance(message, ProtocolError):
                await self._socket.close(
                    code=WSCloseCode.PROTOCOL_ERROR, message=message.reason.encode()
                )
            elif message is not None and self._options.stdin:
                await self._input.put(message)
        return None

    async def _relay_input(self, stream: ProcessStream) -> bytes | None:
        is_closed = False
        while True:
            message = await self._input.get()
            if is_closed:
                continue
            if isinstance(message, StdinClosed):
                is_closed = True
                await stream.close_stdin()
            else:
                await stream.write(message.data)
                self._idle_timeout.touch()

    async def _close(self, final_message: bytes) -> None:
        with suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                if final_message:
                    await self._send(final_message)
                await self._socket.close()

    async def _send(self, message: bytes) -> None:
        frame = encode_frame(message, self._protocol)
        if isinstance(frame, str):
            await self._socket.send_str(frame)
        else:
            await self._socket.send_bytes(frame)
