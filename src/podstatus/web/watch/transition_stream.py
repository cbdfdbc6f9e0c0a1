"""Stream every transition of the history to a client, complete and in order.

The history is read again when its counter of written entries changes. Ids are consecutive: a
missing one has been pruned, and the client receives a `gap`.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterator, Sequence

import msgspec

from podstatus.base.clock import Clock
from podstatus.observe.history.sqlite_store import HistoryEntry
from podstatus.observe.ports import HistoryView
from podstatus.web.v1.wire import GapEvent, ResetEvent, SyncedEvent, transition_view
from podstatus.web.watch.pod_stream import WatchTiming
from podstatus.web.watch.request import TRANSITIONS_EPOCH, ResumePoint, WatchRequest
from podstatus.web.watch.sse import HEARTBEAT, encode_event, id_event, with_id

PAGE_SIZE = 200
"""Entries; about 64 KB."""
_POLL_SECONDS = 0.1
_MAX_PAGES = 4


class TransitionPages:
    """Pages of the history, read once for all clients at the same position, one at a time.

    So watches do not occupy the threads of other readers, nor delay the writer.
    """

    def __init__(self, history: HistoryView) -> None:
        self._history = history
        self._reading = asyncio.Lock()
        self._pages: OrderedDict[tuple[int, int], list[HistoryEntry]] = OrderedDict()

    @property
    def written_count(self) -> int:
        """The number of entries written; if it changes, there is more to read."""
        return self._history.counts.written

    async def page(self, after: int, written: int) -> list[HistoryEntry]:
        """The entries after an id, when so many had been written. Raises HistoryError."""
        key = after, written
        async with self._reading:
            page = self._pages.get(key)
            if page is None:
                page = await self._history.transitions(after, limit=PAGE_SIZE)
                self._pages[key] = page
                if len(self._pages) > _MAX_PAGES:
                    self._pages.popitem(last=False)
            return page


class TransitionStream:
    """The events of one client."""

    def __init__(
        self, pages: TransitionPages, request: WatchRequest, clock: Clock, timing: WatchTiming
    ) -> None:
        self._pages = pages
        self._request = request
        self._clock = clock
        self._timing = timing
        self._last_id = self._sent_id = 0

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield encoded events without end, and heartbeats. Raises HistoryError."""
        resumed = await self._resume()
        if not resumed and self._request.after is not None:
            reason = "the given id is not in this history, which was started again"
            yield self._event(ResetEvent(reason=reason))
        is_first = True
        while True:
            written = self._pages.written_count
            entries = await self._pages.page(self._last_id, written)
            events = b"".join(self._events(entries))
            if events:
                yield events
            if len(entries) == PAGE_SIZE:
                continue
            if is_first:
                yield self._event(SyncedEvent(resumed=resumed))
                is_first = False
            while not await self._wait_for_entries(written):
                yield self._heartbeat()

    async def _resume(self) -> bool:
        """Whether the client can resume: its id, or a later one, is in the history."""
        after = self._request.after
        if after is None or after.epoch != TRANSITIONS_EPOCH or not after.revision:
            return False
        if not await self._pages.page(after.revision - 1, self._pages.written_count):
            return False
        self._last_id = self._sent_id = after.revision
        return True

    async def _wait_for_entries(self, written: int) -> bool:
        """Wait for new entries; False for a heartbeat."""
        until = self._clock.monotonic() + self._timing.heartbeat_seconds * 1e9
        while self._pages.written_count == written:
            await self._clock.wait(_POLL_SECONDS)
            if self._clock.monotonic() > until:
                return False
        return True

    def _events(self, entries: Sequence[HistoryEntry]) -> Iterator[bytes]:
        namespace = self._request.filter.namespace
        for entry in entries:
            before, self._last_id = self._last_id, entry.id
            # A client that starts with the oldest entry has no gap.
            if before and entry.id > before + 1:
                yield self._event(GapEvent(after=before, before=entry.id))
            if namespace in ("", entry.namespace):
                yield self._event(transition_view(entry))

    def _event(self, event: msgspec.Struct) -> bytes:
        self._sent_id = self._last_id
        return with_id(ResumePoint(TRANSITIONS_EPOCH, self._last_id), encode_event(event))

    def _heartbeat(self) -> bytes:
        if self._sent_id == self._last_id:
            return HEARTBEAT
        self._sent_id = self._last_id
        return HEARTBEAT + id_event(ResumePoint(TRANSITIONS_EPOCH, self._last_id))
