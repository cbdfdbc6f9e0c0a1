"""Attach session: output is followed in the container's log, input goes to its FIFO."""

import asyncio
import os
import signal
import stat
from collections import deque
from collections.abc import Iterable

import msgspec

from podstatus.base.clock import Clock
from podstatus.base.msgspec_json import decode_json
from podstatus.base.timeouts import wait_event_or_timeout
from podstatus.runtime.process.exec.pipes import PipeWriter
from podstatus.runtime.process.logs.cri_format import LogEntry
from podstatus.runtime.process.logs.reader import POLL_SECONDS, LogReader
from podstatus.runtime.process.records.layout import ContainerFolder
from podstatus.runtime.process.records.models import ExitRecord, LaunchRecord, StartRecord
from podstatus.runtime.process.shim.records import WINSIZE
from podstatus.runtime.process.state.process_identity import send_signal
from podstatus.runtime.streams import OutputStream, StreamOptions, TerminalSize

_UNKNOWN_EXIT_CODE = 137
"""Exit code of a container without an exit record."""
_FIFO_FLAGS = os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class ProcessAttachSession:
    """Streams of a running container. Closing the session leaves the container running."""

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
        requested = (OutputStream.STDOUT, request.stdout), (OutputStream.STDERR, request.stderr)
        self._streams = {stream for stream, is_requested in requested if is_requested}
        self._clock = clock
        self._stdin = PipeWriter(_open_stdin(directory) if request.stdin and launch.stdin else None)
        self._log = LogReader(directory.log, follow=True)
        self._reading: asyncio.Future[list[LogEntry] | None] | None = None
        self._chunks: deque[tuple[OutputStream, bytes]] = deque()
        self._ended = asyncio.Event()
        self._monitor_fd: int | None = monitor_fd
        asyncio.get_running_loop().add_reader(monitor_fd, self._stop_watching)

    async def start(self) -> None:
        """Open the log at its end; no later output is missed. Raises StreamUnavailableError."""
        await self._log.open()
        await self._log.seek_to_tail(0, None)

    async def read(self) -> tuple[OutputStream, bytes] | None:
        """Return the next chunk of output; None once the container has ended and all is read."""
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
        """Write to standard input; ignored if the container does not read it."""
        await self._stdin.write(data)

    async def close_stdin(self) -> None:
        """Stop writing; the container sees the end of its input only with stdinOnce."""
        self._stdin.close()

    def resize(self, size: TerminalSize) -> None:
        if self._launch.tty:
            temporary = self._directory.path / f"{WINSIZE}.tmp"
            temporary.write_text(f"{size.rows} {size.columns}\n")
            temporary.rename(self._directory.path / WINSIZE)
            send_signal(self._started.monitor, signal.SIGWINCH)

    async def wait(self) -> int:
        """Wait until the container has ended; return its exit code."""
        await self._ended.wait()
        return await asyncio.to_thread(self._exit_code)

    async def close(self) -> None:
        self._stdin.close()
        self._stop_watching()
        if self._reading is not None:
            self._reading.cancel()
        await self._log.close()

    async def _next_entries(self) -> list[LogEntry] | None:
        # Shielded: entries must not be lost if the caller's wait is cancelled.
        if self._reading is None:
            if not self._log.has_more():
                return None
            self._reading = asyncio.ensure_future(self._log.read())
        entries = await asyncio.shield(self._reading)
        self._reading = None
        return entries

    def _select(self, entries: Iterable[LogEntry]) -> list[tuple[OutputStream, bytes]]:
        """Return the entries as chunks: consecutive output to one stream is joined."""
        chunks: list[tuple[OutputStream, list[bytes]]] = []
        for entry in entries:
            if entry.stream not in self._streams:
                continue
            if not chunks or chunks[-1][0] != entry.stream:
                chunks.append((entry.stream, []))
            chunks[-1][1].append(entry.text)
        return [(stream, b"".join(texts)) for stream, texts in chunks]

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
        fifo = os.open(directory.stdin, _FIFO_FLAGS)
    except OSError:
        # No process reads it, or it is not a FIFO.
        return None
    if stat.S_ISFIFO(os.fstat(fifo).st_mode):
        return fifo
    os.close(fifo)
    return None
