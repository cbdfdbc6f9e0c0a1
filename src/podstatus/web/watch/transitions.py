"""Every transition, sent to somebody who watches: complete and in order, from the history.

The history is asked again when it says that something was written. Moments are numbered without
gaps: where one is missing it has been forgotten, and the client is told.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterator, Sequence

from podstatus.base.clock import Clock, Elapsed
from podstatus.observe.history.store import Moment
from podstatus.observe.status_view import Observatory
from podstatus.web.watch.pods import Pace
from podstatus.web.watch.request import MOMENTS, Place, WatchRequest
from podstatus.web.watch.sse import (
    HEARTBEAT,
    anew_body,
    missed_body,
    moment_body,
    numbered,
    reached,
    synced_body,
)

AT_ONCE = 200
"""About 64 KB."""
_LOOK_SECONDS = 0.1
_PAGES = 4


class MomentPages:
    """Moments, read once for all who have got equally far, and by one at a time.

    So those who watch never take up the threads that others need, and least of all who writes.
    """

    def __init__(self, observatory: Observatory) -> None:
        self._observatory = observatory
        self._reading = asyncio.Lock()
        self._pages: OrderedDict[tuple[int, int], list[Moment]] = OrderedDict()

    @property
    def written(self) -> int:
        """How many have been written: with another number there is more to read."""
        return self._observatory.history().written

    async def page(self, after: int, written: int) -> list[Moment]:
        """Those after this one, when so many had been written. Raises HistoryError."""
        key = after, written
        async with self._reading:
            page = self._pages.get(key)
            if page is None:
                page = await self._observatory.moments(after, most=AT_ONCE)
                self._pages[key] = page
                if len(self._pages) > _PAGES:
                    self._pages.popitem(last=False)
            return page


class MomentWatch:
    """What one client is sent."""

    def __init__(self, pages: MomentPages, wanted: WatchRequest, clock: Clock, pace: Pace) -> None:
        self._pages = pages
        self._wanted = wanted
        self._clock = clock
        self._pace = pace
        self._after = self._told = 0

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """One after the other, without end. Never long silent. Raises HistoryError."""
        resumed = await self._begin()
        if not resumed and self._wanted.after is not None:
            why = "what you have seen is not of this history; it was begun anew"
            yield self._event(anew_body(why))
        is_first = True
        while True:
            written = self._pages.written
            moments = await self._pages.page(self._after, written)
            events = b"".join(self._events(moments))
            if events:
                yield events
            if len(moments) == AT_ONCE:
                continue
            if is_first:
                yield self._event(synced_body(resumed=resumed))
                is_first = False
            while not await self._news(written):
                yield self._heartbeat()

    async def _begin(self) -> bool:
        """Whether one can go on after what was seen: it is there, or something later is."""
        after = self._wanted.after
        if after is None or after.life != MOMENTS or not after.number:
            return False
        if not await self._pages.page(after.number - 1, self._pages.written):
            return False
        self._after = self._told = after.number
        return True

    async def _news(self, written: int) -> bool:
        """Wait until more has been written."""
        silent = Elapsed(self._clock)
        while self._pages.written == written:
            await self._clock.wait(_LOOK_SECONDS)
            if silent.seconds() > self._pace.beat_seconds:
                return False
        return True

    def _events(self, moments: Sequence[Moment]) -> Iterator[bytes]:
        wanted = self._wanted.filter.namespace
        for moment in moments:
            before, self._after = self._after, moment.id
            # Who begins with the oldest that is there misses nothing.
            if before and moment.id > before + 1:
                yield self._event(missed_body(before, moment.id))
            if wanted in ("", moment.namespace):
                yield self._event(moment_body(moment))

    def _event(self, body: bytes) -> bytes:
        self._told = self._after
        return numbered(Place(MOMENTS, self._after), body)

    def _heartbeat(self) -> bytes:
        if self._told == self._after:
            return HEARTBEAT
        self._told = self._after
        return HEARTBEAT + reached(Place(MOMENTS, self._after))
