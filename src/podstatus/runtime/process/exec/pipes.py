"""Pipes and terminals on the event loop, unbuffered, so that back-pressure is preserved."""

import asyncio
import fcntl
import os
import struct
import termios
from collections.abc import Mapping

from podstatus.runtime.streams import OutputStream

CHUNK_BYTES = 64 * 1024


class PipeWriter:
    """Writes to a process's input. Once the process has closed it, data is dropped."""

    def __init__(self, fd: int | None) -> None:
        self._fd = fd
        self._waiter: asyncio.Future[None] | None = None
        if fd is not None:
            os.set_blocking(fd, False)

    async def write(self, data: bytes) -> None:
        """Write all data; blocks as long as the process does not read."""
        remaining = memoryview(data)
        while remaining and self._fd is not None:
            try:
                remaining = remaining[os.write(self._fd, remaining) :]
            except BlockingIOError:
                await self._wait_writable(self._fd)
            except OSError:
                self.close()

    def close(self) -> None:
        """Close the pipe; pending writes return."""
        fd, self._fd = self._fd, None
        if fd is not None:
            _wake(self._waiter)
            asyncio.get_running_loop().remove_writer(fd)
            os.close(fd)

    async def _wait_writable(self, fd: int) -> None:
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        loop.add_writer(fd, _wake, self._waiter)
        try:
            await self._waiter
        finally:
            if self._fd is not None:
                loop.remove_writer(fd)


class PipeReader:
    """Reads the output streams of a process. For one reader at a time."""

    def __init__(self, streams: Mapping[int, OutputStream]) -> None:
        self._streams = dict(streams)
        self._remaining: dict[int, int] | None = None
        self._waiter: asyncio.Future[None] | None = None
        for fd in streams:
            os.set_blocking(fd, False)

    async def read(self) -> tuple[OutputStream, bytes] | None:
        """Return the next chunk with its stream; None at the end."""
        # Yield to the event loop: a process that writes constantly must not block it.
        await asyncio.sleep(0)
        while self._streams:
            for fd, stream in list(self._streams.items()):
                data = self._read(fd)
                if data:
                    # Round robin: the other streams come first next time.
                    self._streams[fd] = self._streams.pop(fd)
                    return stream, data
                if data is not None:
                    self._close(fd)
            if self._streams:
                await self._wait_readable()
        return None

    def stop_at_buffered(self) -> None:
        """Read only what is buffered now: the command has ended."""
        self._remaining = {fd: _buffered_bytes(fd) for fd in self._streams}
        _wake(self._waiter)

    def close(self) -> None:
        """Close all streams; pending reads return None."""
        for fd in list(self._streams):
            self._close(fd)
        _wake(self._waiter)

    def _read(self, fd: int) -> bytes | None:
        """Return available data, empty at the end; None if there is none yet."""
        length = CHUNK_BYTES if self._remaining is None else min(CHUNK_BYTES, self._remaining[fd])
        try:
            data = os.read(fd, length)
        except BlockingIOError:
            return None if self._remaining is None else b""
        except OSError:
            # A terminal whose other side is closed raises EIO.
            return b""
        if self._remaining is not None:
            self._remaining[fd] -= len(data)
        return data

    def _close(self, fd: int) -> None:
        del self._streams[fd]
        asyncio.get_running_loop().remove_reader(fd)
        os.close(fd)

    async def _wait_readable(self) -> None:
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        for fd in self._streams:
            loop.add_reader(fd, _wake, self._waiter)
        try:
            await self._waiter
        finally:
            for fd in self._streams:
                loop.remove_reader(fd)


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)


def _buffered_bytes(fd: int) -> int:
    count: int = struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4))[0]
    return count
