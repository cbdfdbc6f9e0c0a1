"""Reads a container's log while it is written.

    async for chunk in read_log(log, LogOptions(follow=True), has_ended=…, clock=…):

Upstream: ReadLogs, cri-client v0.36.4, pkg/logs/logs.go. Upstream reads only the newest file; here
rotated files are read, too, also for `tail_lines` and `since`: a request for the last 100 lines
gets them even a second after a rotation. Files are read in threads, a block at a time; the check
for more data needs no thread.
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
from podstatus.runtime.streams import LogOptions, OutputStream, StreamUnavailableError

POLL_SECONDS = 0.1
"""The standard library has no file notifications. The monitor writes about as often."""


async def read_log(
    log: Path, options: LogOptions, *, has_ended: Callable[[], bool], clock: Clock
) -> AsyncIterator[bytes]:
    """Yield the selected log in chunks; with `follow`, until the container has ended.

    Raises StreamUnavailableError if the log does not exist any more. A log that was not begun is
    empty.
    """
    log_filter = LogFilter(options)
    async with _open_reader(log, follow=options.follow) as reader:
        await reader.seek_to_tail(options.tail_lines, options.stream)
        entries = _follow(reader, has_ended, clock) if options.follow else _read_all(reader)
        async for batch in entries:
            if log_filter.is_full:
                return
            if text := log_filter.add(batch):
                yield text
        if text := log_filter.end():
            yield text


@asynccontextmanager
async def _open_reader(log: Path, *, follow: bool) -> AsyncIterator["LogReader"]:
    reader = LogReader(log, follow=follow)
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
        # Check first: whatever is read afterwards is complete.
        ended = has_ended()
        while reader.has_more() and (entries := await reader.read()) is not None:
            yield entries
        if ended:
            yield reader.read_partial()
            return
        await clock.wait(POLL_SECONDS)


class LogReader:
    """Reads a log from its oldest to its newest file; with `follow`, also later files."""

    def __init__(self, log: Path, *, follow: bool) -> None:
        self._log = log
        self._follow = follow
        self._files: list[LogFile] = []
        # A thread may still read after its caller was cancelled. It must not use closed
        # descriptors, which may have been reused; and the event loop must not wait for it, as a
        # disk may hang.
        self._lock = threading.Lock()
        self._closed = False

    async def open(self) -> None:
        """Open the log; no later output is missed. Raises StreamUnavailableError if it is gone."""
        try:
            await asyncio.to_thread(self._open)
        except OSError as error:
            raise StreamUnavailableError(f"cannot read the log: {error.strerror}") from error

    async def close(self) -> None:
        """Stop reading. If a thread still reads, it closes the files when it is done."""
        self._closed = True
        self._close_if_requested()

    async def seek_to_tail(self, count: int | None, stream: OutputStream | None) -> None:
        """Start at the last `count` lines; None for all."""
        if count is not None:
            await asyncio.to_thread(self._seek_to_tail, count, stream)

    async def read(self) -> list[LogEntry] | None:
        """Return the next entries; None if there are none for now."""
        return await asyncio.to_thread(self._read)

    def has_more(self) -> bool:
        """Return whether there may be more to read. Never blocks on file contents."""
        if not self._files or len(self._files) > 1:
            return True
        file = self._files[0]
        try:
            newest = self._log.lstat()
        except FileNotFoundError:
            # Just rotated, possibly more than once.
            return True
        return (newest.st_dev, newest.st_ino) != file.identity or newest.st_size > file.position

    def read_partial(self) -> list[LogEntry]:
        """Return the last line although it is unterminated."""
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
        file = self._files.pop(0)
        entries = file.read_partial()
        file.close()
        return entries

    def _open_newer(self) -> bool:
        """Open newer files after a rotation. Only then is the last file complete: read it again."""
        newer = open_newer(self._log, self._files[-1]) if self._follow else []
        self._files += newer
        return bool(newer)
