"""Pipes and terminals on the event loop, without a buffer of ours: who is slow slows the other."""

import asyncio
import fcntl
import os
import struct
import termios
from collections.abc import Mapping

from podstatus.runtime.streams import OutputStream

CHUNK_BYTES = 64 * 1024


class PipeWriter:
    """Where somebody's words go to a process. Once it hears no more, they are dropped."""

    def __init__(self, fd: int | None) -> None:
        self._fd = fd
        self._waiter: asyncio.Future[None] | None = None
        if fd is not None:
            os.set_blocking(fd, False)

    async def write(self, data: bytes) -> None:
        """Hand over all of it; that takes as long as the process takes to read."""
        left = memoryview(data)
        while left and self._fd is not None:
            try:
                left = left[os.write(self._fd, left) :]
            except BlockingIOError:
                await self._wait_writable(self._fd)
            except OSError:
                self.close()

    def close(self) -> None:
        """No more is said."""
        opened, self._fd = self._fd, None
        if opened is not None:
            _wake(self._waiter)
            asyncio.get_running_loop().remove_writer(opened)
            os.close(opened)

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
    """What a process says, by where it says it. For one reader."""

    def __init__(self, streams: Mapping[int, OutputStream]) -> None:
        self._streams = dict(streams)
        self._remaining: dict[int, int] | None = None
        self._waiter: asyncio.Future[None] | None = None
        for opened in streams:
            os.set_blocking(opened, False)

    async def read(self) -> tuple[OutputStream, bytes] | None:
        """The next piece; None when there is no more."""
        # Whoever always has something to say must not keep the loop from everything else.
        await asyncio.sleep(0)
        while self._streams:
            for opened, channel in list(self._streams.items()):
                data = self._read(opened)
                if data:
                    # The others first, next time.
                    self._streams[opened] = self._streams.pop(opened)
                    return channel, data
                if data is not None:
                    self._close(opened)
            if self._streams:
                await self._wait_readable()
        return None

    def stop_at_buffered(self) -> None:
        """Nothing that is written from now on is read: whoever wrote has ended."""
        self._remaining = {opened: _buffered_bytes(opened) for opened in self._streams}
        _wake(self._waiter)

    def close(self) -> None:
        """Nothing more is read."""
        for opened in list(self._streams):
            self._close(opened)
        _wake(self._waiter)

    def _read(self, fd: int) -> bytes | None:
        """What is there, empty at the end; None if nothing is there yet."""
        length = CHUNK_BYTES if self._remaining is None else min(CHUNK_BYTES, self._remaining[fd])
        try:
            data = os.read(fd, length)
        except BlockingIOError:
            return None if self._remaining is None else b""
        except OSError:
            # So says a terminal whose other side is closed.
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
        for opened in self._streams:
            loop.add_reader(opened, _wake, self._waiter)
        try:
            await self._waiter
        finally:
            for opened in self._streams:
                loop.remove_reader(opened)


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)


def _buffered_bytes(fd: int) -> int:
    count: int = struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4))[0]
    return count
