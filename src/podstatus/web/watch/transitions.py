"""Every transition, sent to somebody who watches: complete and in order, from the history.

The history is asked again when it says that something was written. Moments are numbered without
gaps: where one is missing it has been forgotten, and the client is told.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterator, Sequence

from podstatus.base.clock import Clock, Elapsed
from podstatus.observe.history.store import HistoryEntry
from podstatus.observe.status_view import StatusView
from podstatus.web.watch.pods import WatchTiming
from podstatus.web.watch.request import TRANSITIONS_EPOCH, ResumePoint, WatchRequest
from podstatus.web.watch.sse import (
    HEARTBEAT,
    gap_body,
    id_event,
    reset_body,
    synced_body,
    transition_body,
    with_id,
)

PAGE_SIZE = 200
"""About 64 KB."""
_POLL_SECONDS = 0.1
_MAX_PAGES = 4


class TransitionPages:
    """Moments, read once for all who have got equally far, and by one at a time.

    So those who watch never take up the threads that others need, and least of all who writes.
    """

    def __init__(self, view: StatusView) -> None:
        self._view = view
        self._reading = asyncio.Lock()
        self._pages: OrderedDict[tuple[int, int], list[HistoryEntry]] = OrderedDict()

    @property
    def written_count(self) -> int:
        """How many have been written: with another number there is more to read."""
        return self._view.history().written

    async def page(self, after: int, written: int) -> list[HistoryEntry]:
        """Those after this one, when so many had been written. Raises HistoryError."""
        key = after, written
        async with self._reading:
            page = self._pages.get(key)
            if page is None:
                page = await self._view.transitions(after, limit=PAGE_SIZE)
                self._pages[key] = page
                if len(self._pages) > _MAX_PAGES:
                    self._pages.popitem(last=False)
            return page


class TransitionStream:
    """What one client is sent."""

    def __init__(
        self, pages: TransitionPages, request: WatchRequest, clock: Clock, timing: WatchTiming
    ) -> None:
        self._pages = pages
        self._request = request
        self._clock = clock
        self._timing = timing
        self._last_id = self._sent_id = 0

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """One after the other, without end. Never long silent. Raises HistoryError."""
        resumed = await self._resume()
        if not resumed and self._request.after is not None:
            why = "what you have seen is not of this history; it was begun anew"
            yield self._event(reset_body(why))
        is_first = True
        while True:
            written = self._pages.written_count
            moments = await self._pages.page(self._last_id, written)
            events = b"".join(self._events(moments))
            if events:
                yield events
            if len(moments) == PAGE_SIZE:
                continue
            if is_first:
                yield self._event(synced_body(resumed=resumed))
                is_first = False
            while not await self._wait_for_entries(written):
                yield self._heartbeat()

    async def _resume(self) -> bool:
        """Whether one can go on after what was seen: it is there, or something later is."""
        after = self._request.after
        if after is None or after.epoch != TRANSITIONS_EPOCH or not after.revision:
            return False
        if not await self._pages.page(after.revision - 1, self._pages.written_count):
            return False
        self._last_id = self._sent_id = after.revision
        return True

    async def _wait_for_entries(self, written: int) -> bool:
        """Wait until more has been written."""
        silent = Elapsed(self._clock)
        while self._pages.written_count == written:
            await self._clock.wait(_POLL_SECONDS)
            if silent.seconds() > self._timing.heartbeat_seconds:
                return False
        return True

    def _events(self, moments: Sequence[HistoryEntry]) -> Iterator[bytes]:
        wanted = self._request.filter.namespace
        for moment in moments:
            before, self._last_id = self._last_id, moment.id
            # Who begins with the oldest that is there misses nothing.
            if before and moment.id > before + 1:
                yield self._event(gap_body(before, moment.id))
            if wanted in ("", moment.namespace):
                yield self._event(transition_body(moment))

    def _event(self, body: bytes) -> bytes:
        self._sent_id = self._last_id
        return with_id(ResumePoint(TRANSITIONS_EPOCH, self._last_id), body)

    def _heartbeat(self) -> bytes:
        if self._sent_id == self._last_id:
            return HEARTBEAT
        self._sent_id = self._last_id
        return HEARTBEAT + id_event(ResumePoint(TRANSITIONS_EPOCH, self._last_id))
