"""Ask a disk that may never answer: a dead server's filesystem lets who asks wait for ever."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from podstatus.node.machine import read_disk
from podstatus.node.reading import DiskReading

_SECONDS = 5.0
"""Long for a disk, and short enough for a reading every 10 s."""


class SlowDisk:
    """The filesystem of a folder, read in a thread; one at most hangs, however often one asks.

    The thread is a daemon: it does not keep the process from ending, as one of an executor would.
    """

    def __init__(
        self,
        folder: Path,
        *,
        read: Callable[[Path], DiskReading] = read_disk,
        seconds: float = _SECONDS,
    ) -> None:
        self._folder = folder
        self._read = read
        self._seconds = seconds
        self._asked: asyncio.Future[DiskReading] | None = None
        self._problem: str | None = None

    def problem(self) -> str | None:
        """Why nothing is known about the disk, or None."""
        return self._problem

    async def read_once(self) -> DiskReading | None:
        """What the disk says, or None: `problem` tells why."""
        if self._asked is None:
            self._asked = self._ask()
        asked = self._asked
        await asyncio.wait([asked], timeout=self._seconds)
        if not asked.done():
            self._problem = f"the disk of {self._folder} has not answered for {self._seconds:g} s"
            return None
        self._asked = None
        return self._told(asked)

    def _told(self, asked: asyncio.Future[DiskReading]) -> DiskReading | None:
        try:
            told = asked.result()
        except OSError as error:
            self._problem = f"the disk of {self._folder} cannot be read: {error.strerror or error}"
            return None
        self._problem = None
        return told

    def _ask(self) -> asyncio.Future[DiskReading]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[DiskReading] = loop.create_future()
        thread = threading.Thread(
            target=self._answer, args=(loop, future), name="podstatus-disk", daemon=True
        )
        thread.start()
        return future

    def _answer(
        self, loop: asyncio.AbstractEventLoop, future: "asyncio.Future[DiskReading]"
    ) -> None:
        told: DiskReading | OSError
        try:
            told = self._read(self._folder)
        except OSError as error:
            told = error
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(_tell, future, told)


def _tell(future: "asyncio.Future[DiskReading]", told: DiskReading | OSError) -> None:
    if future.done():
        return
    if isinstance(told, OSError):
        future.set_exception(told)
    else:
        future.set_result(told)
