"""What starting, stopping and telling share: the book, the disk, the shims, and waiting."""

import asyncio
import signal
import time
from collections.abc import Callable
from contextlib import suppress

from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.port import RuntimeDownError
from podstatus.runtime.process.book import Book
from podstatus.runtime.process.enforce_limits import LimitEnforcer
from podstatus.runtime.process.identity import send_signal
from podstatus.runtime.process.records import PodRecord
from podstatus.runtime.process.shelf import Shelf
from podstatus.runtime.process.shims import Shims
from podstatus.runtime.process.state import Attempt

_START_SECONDS = 30.0
"""A shim needs some 50 ms to come up; a machine under load gets more."""
_FIRST_LOOK, _LATER_LOOKS = 0.001, 0.02
"""Seconds between two looks at files that are about to be there."""
_LOOK_SECONDS = 0.25


class Machinery:
    """The pods of the runtime, with all that moves them. For one event loop."""

    def __init__(self, shelf: Shelf, book: Book, limits: LimitEnforcer) -> None:
        self.shelf = shelf
        self.shims = Shims()
        self.limits = limits
        self._book = book
        self._is_open = False

    @property
    def book(self) -> Book:
        """With what agents before this one left. Raises RuntimeDownError."""
        if not self._is_open:
            self.shelf.set_aside_remains()
            self._book.open()
            for uid, id in self._book.never_begun():
                self._remove(uid, id)
                self._book.drop_attempt(uid, id)
            self.limits.sweep({state.record.uid for state in self._book.states()})
            self._is_open = True
        return self._book

    def close(self) -> None:
        """Watch nobody any more."""
        self._book.close()
        self.limits.close()

    def find(self, uid: PodUID, id: str) -> Attempt | None:
        """An attempt, if it is there."""
        state = self.book.find(uid)
        return state.find(id) if state is not None else None

    def has_ended(self, uid: PodUID, id: str) -> bool:
        """Whether nothing of an attempt runs any more, or it is not there."""
        self.book.ends.look()
        attempt = self.find(uid, id)
        return attempt is None or attempt.has_ended

    def ask_shim(self, uid: PodUID, number: int) -> bool:
        """Send a signal to the shim of a pod; False if there is none."""
        shim = self.book.shim(uid)
        return shim is not None and send_signal(shim.process, number)

    async def remove(self, uid: PodUID, id: str) -> None:
        """Forget an attempt, with its log; nothing of it may run."""
        await asyncio.to_thread(self._remove, uid, id)
        self.book.drop_attempt(uid, id)

    def _remove(self, uid: PodUID, id: str) -> None:
        self.limits.remove(uid, id)
        self.shelf.remove(self.shelf.folder(uid).container(id).path)

    async def came_up(self, record: PodRecord) -> bool:
        """Wait for a shim that is on its way; whether it came."""
        looks = _Looks()
        while not self.book.look_for_shim(record.uid):
            if self.shims.has_ended(record.sandbox_id) or looks.are_over:
                return self.book.look_for_shim(record.uid)
            await looks.wait()
        return True

    async def settled(self, uid: PodUID, attempt: Attempt) -> Attempt:
        """Wait until it is known what came of starting an attempt. Raises RuntimeDownError."""
        id = attempt.launch.id
        if not attempt.is_settled:
            # An agent before this one may have ended just before it asked.
            self.ask_shim(uid, signal.SIGHUP)
        looks = _Looks()
        while not (attempt := self.book.look_at(uid, id)).is_settled:
            if looks.are_over:
                raise RuntimeDownError(f"the shim of pod {uid} does not start {id}")
            await looks.wait()
        return attempt

    async def comes_true(self, uid: PodUID, holds: Callable[[], bool], seconds: float) -> bool:
        """Wait so long for something about a pod; whether it holds."""
        with self.book.news(uid) as news, suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not holds():
                    news.clear()
                    # Not all is told: of a shim that never came up nobody hears when it ends.
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_LOOK_SECONDS):
                            await news.wait()
        return holds()


class _Looks:
    """Looks at files that are about to be there: often in the beginning, and not for ever."""

    def __init__(self) -> None:
        self._pause = _FIRST_LOOK
        self._until = time.monotonic() + _START_SECONDS

    @property
    def are_over(self) -> bool:
        return time.monotonic() > self._until

    async def wait(self) -> None:
        await asyncio.sleep(self._pause)
        self._pause = min(self._pause * 1.5, _LATER_LOOKS)
