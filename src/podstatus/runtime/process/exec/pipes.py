"""Pipes and terminals on the event loop, without a buffer of ours: who is slow slows the other."""

import asyncio
import fcntl
import os
import struct
import termios
from collections.abc import Mapping

from podstatus.runtime.streams import Channel

PIECE = 64 * 1024


class Input:
    """Where somebody's words go to a process. Once it hears no more, they are dropped."""

    def __init__(self, opened: int | None) -> None:
        self._opened = opened
        self._waiting: asyncio.Future[None] | None = None
        if opened is not None:
            os.set_blocking(opened, False)

    async def write(self, data: bytes) -> None:
        """Hand over all of it; that takes as long as the process takes to read."""
        left = memoryview(data)
        while left and self._opened is not None:
            try:
                left = left[os.write(self._opened, left) :]
            except BlockingIOError:
                await self._until_writable(self._opened)
            except OSError:
                self.close()

    def close(self) -> None:
        """No more is said."""
        opened, self._opened = self._opened, None
        if opened is not None:
            _wake(self._waiting)
            asyncio.get_running_loop().remove_writer(opened)
            os.close(opened)

    async def _until_writable(self, opened: int) -> None:
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        loop.add_writer(opened, _wake, self._waiting)
        try:
            await self._waiting
        finally:
            if self._opened is not None:
                loop.remove_writer(opened)


class Outputs:
    """What a process says, by where it says it. For one reader."""

    def __init__(self, channels: Mapping[int, Channel]) -> None:
        self._open = dict(channels)
        self._left: dict[int, int] | None = None
        self._waiting: asyncio.Future[None] | None = None
        for opened in channels:
            os.set_blocking(opened, False)

    async def read(self) -> tuple[Channel, bytes] | None:
        """The next piece; None when there is no more."""
        # Whoever always has something to say must not keep the loop from everything else.
        await asyncio.sleep(0)
        while self._open:
            for opened, channel in list(self._open.items()):
                data = self._read(opened)
                if data:
                    # The others first, next time.
                    self._open[opened] = self._open.pop(opened)
                    return channel, data
                if data is not None:
                    self._close(opened)
            if self._open:
                await self._until_readable()
        return None

    def end_soon(self) -> None:
        """Nothing that is written from now on is read: whoever wrote has ended."""
        self._left = {opened: _waiting_bytes(opened) for opened in self._open}
        _wake(self._waiting)

    def close(self) -> None:
        """Nothing more is read."""
        for opened in list(self._open):
            self._close(opened)
        _wake(self._waiting)

    def _read(self, opened: int) -> bytes | None:
        """What is there, empty at the end; None if nothing is there yet."""
        length = PIECE if self._left is None else min(PIECE, self._left[opened])
        try:
            data = os.read(opened, length)
        except BlockingIOError:
            return None if self._left is None else b""
        except OSError:
            # So says a terminal whose other side is closed.
            return b""
        if self._left is not None:
            self._left[opened] -= len(data)
        return data

    def _close(self, opened: int) -> None:
        del self._open[opened]
        asyncio.get_running_loop().remove_reader(opened)
        os.close(opened)

    async def _until_readable(self) -> None:
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        for opened in self._open:
            loop.add_reader(opened, _wake, self._waiting)
        try:
            await self._waiting
        finally:
            for opened in self._open:
                loop.remove_reader(opened)


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)


def _waiting_bytes(opened: int) -> int:
    count: int = struct.unpack("i", fcntl.ioctl(opened, termios.FIONREAD, b"\0" * 4))[0]
    return count
