"""Somebody who talks to a container itself: its log is followed, its input is a named pipe."""

import asyncio
import os
import signal
import stat
from collections import deque
from collections.abc import Iterable

import msgspec

from podstatus.base.aio import wait_event_or_timeout
from podstatus.base.clock import Clock
from podstatus.base.msgspec_json import decode_json
from podstatus.runtime.process.exec.pipes import Input
from podstatus.runtime.process.logs.cri_format import Entry
from podstatus.runtime.process.logs.reader import POLL_SECONDS, LogReader
from podstatus.runtime.process.records.layout import ContainerFolder
from podstatus.runtime.process.records.models import ExitRecord, Launch, StartRecord
from podstatus.runtime.process.state.process_identity import send_signal
from podstatus.runtime.streams import Channel, TalkRequest, TerminalSize

_UNKNOWN = 137
"""Of a container whose end nobody saw."""
_FIFO = os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
WINDOW_SIZE = "winsize"
"""Read by the keeper when it gets SIGWINCH: rows and columns."""


class Attached:
    """Follows what a container writes. To hang up leaves it as it is."""

    def __init__(
        self,
        place: ContainerFolder,
        launch: Launch,
        started: StartRecord,
        request: TalkRequest,
        *,
        keeper: int,
        clock: Clock,
    ) -> None:
        self._place = place
        self._launch = launch
        self._started = started
        wanted = (Channel.OUT, request.stdout), (Channel.ERR, request.stderr)
        self._channels = {channel for channel, asked in wanted if asked}
        self._clock = clock
        self._input = Input(_open_input(place) if request.stdin and launch.stdin else None)
        self._log = LogReader(place.log, follow=True)
        self._reading: asyncio.Future[list[Entry] | None] | None = None
        self._pieces: deque[tuple[Channel, bytes]] = deque()
        self._ended = asyncio.Event()
        self._keeper: int | None = keeper
        asyncio.get_running_loop().add_reader(keeper, self._end)

    async def begin(self) -> None:
        """From here on nothing that is written is missed. Raises NoStreamError."""
        await self._log.open()
        await self._log.go_to_last(0, None)

    async def read(self) -> tuple[Channel, bytes] | None:
        """The next piece it wrote; None when it has ended and all is read."""
        while not self._pieces:
            ended = self._ended.is_set()
            while (entries := await self._next()) is not None:
                self._pieces.extend(self._wanted(entries))
                if self._pieces:
                    return self._pieces.popleft()
            if ended:
                return None
            await wait_event_or_timeout(self._ended, self._clock, POLL_SECONDS)
        return self._pieces.popleft()

    async def write(self, data: bytes) -> None:
        """Hand it input; if it does not read any, nothing happens."""
        await self._input.write(data)

    async def end_input(self) -> None:
        """It sees the end of its input if that was for one talk only (stdinOnce)."""
        self._input.close()

    def resize(self, size: TerminalSize) -> None:
        """Tell it how large the terminal is, if it has one."""
        if self._launch.tty:
            beside = self._place.path / f"{WINDOW_SIZE}.tmp"
            beside.write_text(f"{size.rows} {size.columns}\n")
            beside.rename(self._place.path / WINDOW_SIZE)
            send_signal(self._started.keeper, signal.SIGWINCH)

    async def wait(self) -> int:
        """The exit code, once it has ended."""
        await self._ended.wait()
        return await asyncio.to_thread(self._exit_code)

    async def close(self) -> None:
        """Hang up."""
        self._input.close()
        self._end()
        if self._reading is not None:
            self._reading.cancel()
        await self._log.close()

    async def _next(self) -> list[Entry] | None:
        # What was read is not lost with somebody who stopped waiting for it.
        if self._reading is None:
            if not self._log.has_more():
                return None
            self._reading = asyncio.ensure_future(self._log.read())
        entries = await asyncio.shield(self._reading)
        self._reading = None
        return entries

    def _wanted(self, entries: Iterable[Entry]) -> list[tuple[Channel, bytes]]:
        """The entries as few pieces: what was written to one channel without a break."""
        pieces: list[tuple[Channel, list[bytes]]] = []
        for entry in entries:
            if entry.channel not in self._channels:
                continue
            if not pieces or pieces[-1][0] != entry.channel:
                pieces.append((entry.channel, []))
            pieces[-1][1].append(entry.text)
        return [(channel, b"".join(texts)) for channel, texts in pieces]

    def _exit_code(self) -> int:
        try:
            return decode_json(self._place.exit.read_bytes(), ExitRecord).exit_code
        except (OSError, msgspec.MsgspecError):
            return _UNKNOWN

    def _end(self) -> None:
        self._ended.set()
        if self._keeper is not None:
            asyncio.get_running_loop().remove_reader(self._keeper)
            os.close(self._keeper)
            self._keeper = None


def _open_input(place: ContainerFolder) -> int | None:
    try:
        opened = os.open(place.stdin, _FIFO)
    except OSError:
        # Nobody reads there, or it is not what it should be.
        return None
    if stat.S_ISFIFO(os.fstat(opened).st_mode):
        return opened
    os.close(opened)
    return None
