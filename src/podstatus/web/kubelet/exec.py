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
    Broken,
    Input,
    InputEnds,
    Resize,
    exit_message,
    failure_message,
    greeting,
    is_wanted,
    output_message,
    read_message,
)
from podstatus.web.kubelet.idle_timeout import IdleWatch

logger = logging.getLogger(__name__)

Begin = Callable[[], Awaitable[ProcessStream]]
"""Start the process, or find it. Raises NoStreamError."""

MOST_MESSAGE = 2**20
"""Of what a client sends; kubectl sends 32 KiB at a time."""
_MOST_WAITING = 8
"""Messages for a process that does not read. Then the client has to wait: nobody reads on."""
LAST_SECONDS = 10.0
"""How long a client may take to hear how it ended, and to say goodbye."""


class Conversation:
    """One talk over one WebSocket."""

    def __init__(
        self,
        socket: web.WebSocketResponse,
        request: StreamOptions,
        protocol: str,
        idle: IdleWatch,
        *,
        attached: bool = False,
    ) -> None:
        """`attached`: to what runs anyway. How that ends is for its pod's status to tell."""
        self._socket = socket
        self._request = request
        self._protocol = protocol
        self._idle = idle
        self._attached = attached
        self._input: asyncio.Queue[Input | InputEnds] = asyncio.Queue(_MOST_WAITING)

    async def hold(self, begin: Begin) -> None:
        """Talk until the process or the client ends it, or nothing happens for too long."""
        await self._socket.send_bytes(greeting(self._request))
        talk = await self._begin(begin)
        if talk is None:
            return
        try:
            last_words = await self._talk(talk)
            if last_words is not None:
                await self._end(last_words)
        finally:
            # Also for one who is cancelled: the process must not be left behind.
            await asyncio.shield(talk.close())

    async def _begin(self, begin: Begin) -> ProcessStream | None:
        try:
            return await begin()
        except StreamUnavailableError as error:
            await self._end(self.failure(str(error)))
        except Exception as error:
            # Whatever a runtime of somebody else's raises is for whoever asked, and for the log.
            logger.exception("talk could not begin")
            await self._end(self.failure(f"{type(error).__name__}: {error}"))
        return None

    async def _talk(self, talk: ProcessStream) -> bytes | None:
        """Pass everything on; what is to be told in the end, None if nobody is there."""
        tasks = [
            asyncio.create_task(self._pass_output(talk), name="output"),
            asyncio.create_task(self._pass_input(talk), name="input"),
            asyncio.create_task(self._listen(talk), name="listen"),
            asyncio.create_task(self._watch(), name="idle"),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            # By their order: what was said last is passed on even to one who is leaving.
            return self._last_words(next(task for task in tasks if task in done))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _last_words(self, task: "asyncio.Task[bytes | None]") -> bytes | None:
        error = task.exception()
        if error is None:
            return task.result()
        if isinstance(error, ConnectionError):
            return None
        logger.warning("talk broke off: error=%r", error)
        return self.failure(f"{type(error).__name__}: {error}")

    def failure(self, why: str) -> bytes:
        """What a client is told of a talk that nobody can go on with."""
        what = "attaching to container" if self._attached else "executing command in container"
        return failure_message(f"error {what}: {why}")

    async def _watch(self) -> bytes | None:
        logger.info("talk ended: why=%s", await self._idle.watch())
        return None

    async def _pass_output(self, talk: ProcessStream) -> bytes:
        while (piece := await talk.read()) is not None:
            channel, data = piece
            if data and is_wanted(channel, self._request):
                await self._socket.send_bytes(output_message(channel, data))
                self._idle.touch()
        code = await talk.wait()
        return exit_message(0 if self._attached else code)

    async def _listen(self, talk: ProcessStream) -> bytes | None:
        """Take what the client sends, until it has gone."""
        async for message in self._socket:
            self._idle.touch()
            if message.type not in (WSMsgType.BINARY, WSMsgType.TEXT):
                continue
            data = message.data.encode() if message.type is WSMsgType.TEXT else message.data
            told = read_message(data, self._protocol)
            if isinstance(told, Resize):
                talk.resize(told.size)
            elif isinstance(told, Broken):
                await self._socket.close(code=WSCloseCode.PROTOCOL_ERROR, message=told.why.encode())
            elif told is not None and self._request.stdin:
                await self._input.put(told)
        return None

    async def _pass_input(self, talk: ProcessStream) -> bytes | None:
        has_ended = False
        while True:
            told = await self._input.get()
            if has_ended:
                continue
            if isinstance(told, InputEnds):
                has_ended = True
                await talk.close_stdin()
            else:
                await talk.write(told.data)
                self._idle.touch()

    async def _end(self, last_words: bytes) -> None:
        with suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(LAST_SECONDS):
                await self._socket.send_bytes(last_words)
                await self._socket.close()
