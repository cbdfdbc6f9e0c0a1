"""Read a container's log while it is written.

    async for piece in read_log(place, LogOptions(follow=True), has_ended=…, clock=…):

Upstream: ReadLogs, cri-client v0.36.4, pkg/logs/logs.go. There only the newest file is read; here
the ones that were put away count as well, for what is asked for by lines and by time too: whoever
asks for the last 100 lines gets them a second after the file was put away. Files are read in
threads, a block at a time; to see whether there is more needs no thread.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from podstatus.base.clock import Clock
from podstatus.runtime.process.logs.cri_format import LogEntry, LogFilter
from podstatus.runtime.process.logs.files import (
    LogFile,
    close_all,
    open_log,
    open_newer,
    seek_to_end,
    seek_to_tail,
)
from podstatus.runtime.process.records.layout import ContainerFolder
from podstatus.runtime.streams import LogOptions, OutputStream, StreamUnavailableError

POLL_SECONDS = 0.1
"""Nothing in the standard library tells of changes to files. The keeper writes as often."""


async def read_log(
    directory: ContainerFolder, options: LogOptions, *, has_ended: Callable[[], bool], clock: Clock
) -> AsyncIterator[bytes]:
    """What is asked for, in pieces; followed until the container has ended and all is read.

    Raises NoStreamError if there is no log any more. One that was not begun is empty.
    """
    chosen = LogFilter(options)
    async with _open_reader(directory, follow=options.follow) as reader:
        await reader.seek_to_tail(options.tail_lines, options.stream)
        entries = _follow(reader, has_ended, clock) if options.follow else _read_all(reader)
        async for some in entries:
            if chosen.is_full:
                return
            if text := chosen.add(some):
                yield text
        if text := chosen.end():
            yield text


@asynccontextmanager
async def _open_reader(directory: ContainerFolder, *, follow: bool) -> AsyncIterator["LogReader"]:
    reader = LogReader(directory.log, follow=follow)
    try:
        await reader.open()
        yield reader
    finally:
        await reader.close()


async def _read_all(reader: "LogReader") -> AsyncIterator[list[LogEntry]]:
    while (entries := await reader.read()) is not None:
        yield entries
    yield reader.read_partial()


async def _follow(
    reader: "LogReader", has_ended: Callable[[], bool], clock: Clock
) -> AsyncIterator[list[LogEntry]]:
    while True:
        # Asked first: what is read after that is all there will be.
        ended = has_ended()
        while reader.has_more() and (entries := await reader.read()) is not None:
            yield entries
        if ended:
            yield reader.read_partial()
            return
        await clock.wait(POLL_SECONDS)


class LogReader:
    """Reads a log from its oldest file to its newest; to follow it, on into those that come."""

    def __init__(self, log: Path, *, follow: bool) -> None:
        self._log = log
        self._follow = follow
        self._files: list[LogFile] = []
        # A thread may still read when whoever asked for it is gone: it must not meet files that
        # were closed, or worse, opened by somebody else. And nobody waits for it: a disk may hang.
        self._lock = threading.Lock()
        self._closed = False

    async def open(self) -> None:
        """From here on nothing is missed. Raises NoStreamError if there is no log any more."""
        try:
            await asyncio.to_thread(self._open)
        except OSError as error:
            raise StreamUnavailableError(f"the log cannot be read: {error.strerror}") from error

    async def close(self) -> None:
        """No more is read. If a thread still reads, it closes the files when it is done."""
        self._closed = True
        self._close_if_requested()

    async def seek_to_tail(self, count: int | None, stream: OutputStream | None) -> None:
        """Begin with so many of the last lines; None for all."""
        if count is not None:
            await asyncio.to_thread(self._seek_to_tail, count, stream)

    async def read(self) -> list[LogEntry] | None:
        """The next entries; None if there are no more for now."""
        return await asyncio.to_thread(self._read)

    def has_more(self) -> bool:
        """Whether a look is worth it."""
        if not self._files or len(self._files) > 1:
            return True
        file = self._files[0]
        try:
            newest = self._log.lstat()
        except FileNotFoundError:
            # Just put away, and perhaps not for the first time.
            return True
        return (newest.st_dev, newest.st_ino) != file.identity or newest.st_size > file.position

    def read_partial(self) -> list[LogEntry]:
        """A last line whose end never came."""
        return self._files[-1].read_partial() if self._files else []

    def _close_if_requested(self) -> None:
        if self._closed and self._lock.acquire(blocking=False):
            close_all(self._files)
            self._files = []
            self._lock.release()

    @contextmanager
    def _using_files(self) -> Iterator[None]:
        try:
            with self._lock:
                yield
        finally:
            self._close_if_requested()

    def _open(self) -> None:
        with self._using_files():
            if not self._closed:
                self._files = open_log(self._log)
                if not self._follow:
                    for file in self._files:
                        file.stop_at_current_end()

    def _seek_to_tail(self, count: int, stream: OutputStream | None) -> None:
        with self._using_files():
            if count <= 0:
                seek_to_end(self._files)
            else:
                seek_to_tail(self._files, count, stream)

    def _read(self) -> list[LogEntry] | None:
        with self._using_files():
            if not self._files and not self._closed and self._follow:
                self._files = open_log(self._log)
            while self._files:
                entries = self._files[0].read()
                if entries is None and len(self._files) > 1:
                    entries = self._next_file()
                if entries is not None:
                    return entries
                if not self._open_newer():
                    return None
            return None

    def _next_file(self) -> list[LogEntry]:
        done = self._files.pop(0)
        entries = done.read_partial()
        done.close()
        return entries

    def _open_newer(self) -> bool:
        """Whether the newest file was put away. Only now it is whole: it is read once more."""
        later = open_newer(self._log, self._files[-1]) if self._follow else []
        self._files += later
        return bool(later)
