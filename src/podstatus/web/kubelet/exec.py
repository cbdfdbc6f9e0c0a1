"""Pass on what a client and a process say to each other, over a WebSocket, until one ends it.

Upstream: createWebSocketStreams, apiserver/pkg/util/proxy/websocket.go v0.36.4; ServeExec and
ServeAttach, cri-streaming v0.36.4.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from aiohttp import WSCloseCode, WSMsgType, web

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
"""Start the process, or find it. Raises NoStreamError."""

MAX_MESSAGE_BYTES = 2**20
"""Of what a client sends; kubectl sends 32 KiB at a time."""
_MAX_QUEUED_INPUT = 8
"""Messages for a process that does not read. Then the client has to wait: nobody reads on."""
CLOSE_SECONDS = 10.0
"""How long a client may take to hear how it ended, and to say goodbye."""


class ExecSession:
    """One talk over one WebSocket."""

    def __init__(
        self,
        socket: web.WebSocketResponse,
        options: StreamOptions,
        protocol: str,
        idle_timeout: IdleTimeout,
        *,
        attached: bool = False,
    ) -> None:
        """`attached`: to what runs anyway. How that ends is for its pod's status to tell."""
        self._socket = socket
        self._options = options
        self._protocol = protocol
        self._idle_timeout = idle_timeout
        self._attached = attached
        self._input: asyncio.Queue[StdinData | StdinClosed] = asyncio.Queue(_MAX_QUEUED_INPUT)

    async def run(self, open_stream: OpenStream) -> None:
        """Talk until the process or the client ends it, or nothing happens for too long."""
        await self._socket.send_bytes(hello_frame(self._options))
        talk = await self._open(open_stream)
        if talk is None:
            return
        try:
            last_words = await self._relay(talk)
            if last_words is not None:
                await self._close(last_words)
        finally:
            # Also for one who is cancelled: the process must not be left behind.
            await asyncio.shield(talk.close())

    async def _open(self, begin: OpenStream) -> ProcessStream | None:
        try:
            return await begin()
        except StreamUnavailableError as error:
            await self._close(self.failure(str(error)))
        except Exception as error:
            # Whatever a runtime of somebody else's raises is for whoever asked, and for the log.
            logger.exception("talk could not begin")
            await self._close(self.failure(f"{type(error).__name__}: {error}"))
        return None

    async def _relay(self, talk: ProcessStream) -> bytes | None:
        """Pass everything on; what is to be told in the end, None if nobody is there."""
        tasks = [
            asyncio.create_task(self._relay_output(talk), name="output"),
            asyncio.create_task(self._relay_input(talk), name="input"),
            asyncio.create_task(self._receive(talk), name="listen"),
            asyncio.create_task(self._watch_idle(), name="idle"),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            # By their order: what was said last is passed on even to one who is leaving.
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
        logger.warning("talk broke off: error=%r", error)
        return self.failure(f"{type(error).__name__}: {error}")

    def failure(self, reason: str) -> bytes:
        """What a client is told of a talk that nobody can go on with."""
        what = "attaching to container" if self._attached else "executing command in container"
        return failure_message(f"error {what}: {reason}")

    async def _watch_idle(self) -> bytes | None:
        logger.info("talk ended: why=%s", await self._idle_timeout.wait_idle())
        return None

    async def _relay_output(self, talk: ProcessStream) -> bytes:
        while (piece := await talk.read()) is not None:
            channel, data = piece
            if data and is_requested(channel, self._options):
                await self._socket.send_bytes(output_message(channel, data))
                self._idle_timeout.touch()
        code = await talk.wait()
        return exit_message(0 if self._attached else code)

    async def _receive(self, talk: ProcessStream) -> bytes | None:
        """Take what the client sends, until it has gone."""
        async for message in self._socket:
            self._idle_timeout.touch()
            if message.type not in (WSMsgType.BINARY, WSMsgType.TEXT):
                continue
            data = message.data.encode() if message.type is WSMsgType.TEXT else message.data
            told = read_message(data, self._protocol)
            if isinstance(told, Resize):
                talk.resize(told.size)
            elif isinstance(told, ProtocolError):
                await self._socket.close(
                    code=WSCloseCode.PROTOCOL_ERROR, message=told.reason.encode()
                )
            elif told is not None and self._options.stdin:
                await self._input.put(told)
        return None

    async def _relay_input(self, talk: ProcessStream) -> bytes | None:
        has_ended = False
        while True:
            told = await self._input.get()
            if has_ended:
                continue
            if isinstance(told, StdinClosed):
                has_ended = True
                await talk.close_stdin()
            else:
                await talk.write(told.data)
                self._idle_timeout.touch()

    async def _close(self, last_words: bytes) -> None:
        with suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._socket.send_bytes(last_words)
                await self._socket.close()
