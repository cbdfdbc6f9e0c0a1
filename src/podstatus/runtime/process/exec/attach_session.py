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
from podstatus.runtime.process.exec.pipes import PipeWriter
from podstatus.runtime.process.logs.cri_format import LogEntry
from podstatus.runtime.process.logs.reader import POLL_SECONDS, LogReader
from podstatus.runtime.process.records.layout import ContainerFolder
from podstatus.runtime.process.records.models import ExitRecord, LaunchRecord, StartRecord
from podstatus.runtime.process.state.process_identity import send_signal
from podstatus.runtime.streams import OutputStream, StreamOptions, TerminalSize

_UNKNOWN_EXIT_CODE = 137
"""Of a container whose end nobody saw."""
_FIFO_FLAGS = os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
WINDOW_SIZE_FILE = "winsize"
"""Read by the keeper when it gets SIGWINCH: rows and columns."""


class ProcessAttachSession:
    """Follows what a container writes. To hang up leaves it as it is."""

    def __init__(
        self,
        directory: ContainerFolder,
        launch: LaunchRecord,
        started: StartRecord,
        request: StreamOptions,
        *,
        monitor_fd: int,
        clock: Clock,
    ) -> None:
        self._directory = directory
        self._launch = launch
        self._started = started
        wanted = (OutputStream.STDOUT, request.stdout), (OutputStream.STDERR, request.stderr)
        self._streams = {channel for channel, asked in wanted if asked}
        self._clock = clock
        self._stdin = PipeWriter(_open_stdin(directory) if request.stdin and launch.stdin else None)
        self._log = LogReader(directory.log, follow=True)
        self._reading: asyncio.Future[list[LogEntry] | None] | None = None
        self._chunks: deque[tuple[OutputStream, bytes]] = deque()
        self._ended = asyncio.Event()
        self._monitor_fd: int | None = monitor_fd
        asyncio.get_running_loop().add_reader(monitor_fd, self._stop_watching)

    async def start(self) -> None:
        """From here on nothing that is written is missed. Raises NoStreamError."""
        await self._log.open()
        await self._log.seek_to_tail(0, None)

    async def read(self) -> tuple[OutputStream, bytes] | None:
        """The next piece it wrote; None when it has ended and all is read."""
        while not self._chunks:
            ended = self._ended.is_set()
            while (entries := await self._next_entries()) is not None:
                self._chunks.extend(self._select(entries))
                if self._chunks:
                    return self._chunks.popleft()
            if ended:
                return None
            await wait_event_or_timeout(self._ended, self._clock, POLL_SECONDS)
        return self._chunks.popleft()

    async def write(self, data: bytes) -> None:
        """Hand it input; if it does not read any, nothing happens."""
        await self._stdin.write(data)

    async def close_stdin(self) -> None:
        """It sees the end of its input if that was for one talk only (stdinOnce)."""
        self._stdin.close()

    def resize(self, size: TerminalSize) -> None:
        """Tell it how large the terminal is, if it has one."""
        if self._launch.tty:
            beside = self._directory.path / f"{WINDOW_SIZE_FILE}.tmp"
            beside.write_text(f"{size.rows} {size.columns}\n")
            beside.rename(self._directory.path / WINDOW_SIZE_FILE)
            send_signal(self._started.keeper, signal.SIGWINCH)

    async def wait(self) -> int:
        """The exit code, once it has ended."""
        await self._ended.wait()
        return await asyncio.to_thread(self._exit_code)

    async def close(self) -> None:
        """Hang up."""
        self._stdin.close()
        self._stop_watching()
        if self._reading is not None:
            self._reading.cancel()
        await self._log.close()

    async def _next_entries(self) -> list[LogEntry] | None:
        # What was read is not lost with somebody who stopped waiting for it.
        if self._reading is None:
            if not self._log.has_more():
                return None
            self._reading = asyncio.ensure_future(self._log.read())
        entries = await asyncio.shield(self._reading)
        self._reading = None
        return entries

    def _select(self, entries: Iterable[LogEntry]) -> list[tuple[OutputStream, bytes]]:
        """The entries as few pieces: what was written to one channel without a break."""
        pieces: list[tuple[OutputStream, list[bytes]]] = []
        for entry in entries:
            if entry.stream not in self._streams:
                continue
            if not pieces or pieces[-1][0] != entry.stream:
                pieces.append((entry.stream, []))
            pieces[-1][1].append(entry.text)
        return [(channel, b"".join(texts)) for channel, texts in pieces]

    def _exit_code(self) -> int:
        try:
            return decode_json(self._directory.exit.read_bytes(), ExitRecord).exit_code
        except (OSError, msgspec.MsgspecError):
            return _UNKNOWN_EXIT_CODE

    def _stop_watching(self) -> None:
        self._ended.set()
        if self._monitor_fd is not None:
            asyncio.get_running_loop().remove_reader(self._monitor_fd)
            os.close(self._monitor_fd)
            self._monitor_fd = None


def _open_stdin(directory: ContainerFolder) -> int | None:
    try:
        opened = os.open(directory.stdin, _FIFO_FLAGS)
    except OSError:
        # Nobody reads there, or it is not what it should be.
        return None
    if stat.S_ISFIFO(os.fstat(opened).st_mode):
        return opened
    os.close(opened)
    return None
