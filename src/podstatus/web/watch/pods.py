"""The pods on the board, sent to somebody who watches: all there are, then what changes.

Nobody has a queue. Who has taken what there was is given all that changed since, each pod once and
as it is then: a slow client gets fewer states of a pod, and never an old one after a new one.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator

import msgspec

from podstatus.base.clock import Clock
from podstatus.kube.scalars.time import Time
from podstatus.observe.snapshot_cache import ChangedPods, SnapshotCache
from podstatus.observe.summary.pod import PodSummary
from podstatus.web.watch.request import ResumePoint, WatchRequest
from podstatus.web.watch.selection import PodSelection, WatchAction
from podstatus.web.watch.sse import (
    HEARTBEAT,
    deleted_body,
    id_event,
    pod_body,
    reset_body,
    synced_body,
    with_id,
)

_CHUNK_BYTES = 32 * 2**10
"""Bytes that are sent at a time, about."""
_FRESH_NANOS = 2 * 1_000_000_000


class WatchTiming(msgspec.Struct, frozen=True, kw_only=True):
    """How often something is sent."""

    batch_seconds: float = 0.05
    """For changes that come soon after another: they are sent together."""
    heartbeat_seconds: float = 15.0
    """Of silence, then a sign of life."""


class PodEventCache:
    """Events of pods, made once for all who watch.

    What they say of a pod's health is as old as they are, which is twice the span at most; and so
    there are not more of them than pods that somebody was sent meanwhile.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._new: dict[int, bytes] = {}
        self._old: dict[int, bytes] = {}
        self._generation_started_at = 0

    def get(self, number: int, pod: PodSummary) -> bytes:
        """The event of the pod as it is since the change with this number."""
        self._expire()
        found = self._new.get(number) or self._old.get(number)
        if found is None:
            found = self._new[number] = pod_body(pod, Time.from_unix_nanos(self._clock.now()))
        return found

    def clear(self) -> None:
        """Nobody watches."""
        self._new, self._old = {}, {}

    def _expire(self) -> None:
        now = self._clock.now()
        if abs(now - self._generation_started_at) > 2 * _FRESH_NANOS:
            self.clear()
            self._generation_started_at = now
        elif abs(now - self._generation_started_at) > _FRESH_NANOS:
            self._new, self._old = {}, self._new
            self._generation_started_at = now


class PodStream:
    """What one client is sent."""

    def __init__(
        self,
        cache: SnapshotCache,
        request: WatchRequest,
        event_cache: PodEventCache,
        clock: Clock,
        timing: WatchTiming,
    ) -> None:
        self._cache = cache
        self._request = request
        self._event_cache = event_cache
        self._clock = clock
        self._timing = timing
        self._selection = PodSelection(request.filter, resumed=True)
        self._revision = 0
        """All changes up to this one have been sent."""
        self._sent_revision = 0
        """The number that the client was told."""

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """One after the other, without end. Never long silent."""
        came_back = self._request.after is not None
        after, is_first = self._resume(), True
        while True:
            changed = self._cache.changed_since(after)
            if changed.reset:
                self._selection = PodSelection(self._request.filter, resumed=False)
            if changed.reset and came_back:
                yield self._event(reset_body(self._reset_reason(after)))
            for piece in self._changes(changed):
                yield piece
            after = self._revision = changed.revision
            if is_first or changed.reset:
                yield self._event(synced_body(resumed=not changed.reset))
            came_back, is_first = True, False
            while not await self._wait_for_changes(after):
                yield self._heartbeat()

    def _resume(self) -> int | None:
        after = self._request.after
        if after is None or after.epoch != self._cache.epoch:
            return None
        self._revision = after.revision
        return after.revision

    def _reset_reason(self, after: int | None) -> str:
        if after is None:
            return "what you have seen was of another life of this server; it was restarted"
        return "so much has happened since that not all of it is remembered"

    async def _wait_for_changes(self, after: int) -> bool:
        """Wait for changes, and a little longer for those that come with them."""
        try:
            async with asyncio.timeout(self._timing.heartbeat_seconds):
                await self._cache.wait(after)
        except TimeoutError:
            return False
        await self._clock.wait(self._timing.batch_seconds)
        return True

    def _changes(self, changed: ChangedPods) -> Iterator[bytes]:
        """Their events, some at a time. What is last has the number of all."""
        events: list[bytes] = []
        size = 0
        for body in self._event_bodies(changed):
            if size > _CHUNK_BYTES:
                yield b"".join(events)
                events, size = [], 0
            events.append(self._event(body))
            size += len(body)
        if events:
            self._revision = changed.revision
            events[-1] = self._event(body)
            yield b"".join(events)

    def _event_bodies(self, changed: ChangedPods) -> Iterator[bytes]:
        """Those that are gone first: a pod that came back is there.

        A pod may have changed again since: it is sent as it is now, and once more when the later
        change has its turn, so that a client that is cut off meanwhile misses nothing.
        """
        for _, gone in changed.deleted:
            if self._selection.on_deleted(gone) is WatchAction.DELETED:
                yield deleted_body(gone.uid, gone.namespace, gone.name)
        now = Time.from_unix_nanos(self._clock.now())
        for uid in changed.pods:
            found = self._cache.find(uid)
            if found is None:
                continue
            number, pod = found
            if number <= changed.revision:
                self._revision = number
            match self._selection.on_pod(pod, now):
                case WatchAction.POD:
                    yield self._event_cache.get(number, pod)
                case WatchAction.DELETED:
                    yield deleted_body(pod.uid, pod.namespace, pod.name)

    def _event(self, body: bytes) -> bytes:
        self._sent_revision = self._revision
        return with_id(ResumePoint(self._cache.epoch, self._revision), body)

    def _heartbeat(self) -> bytes:
        """Who is told nothing, since other pods change, is told how far he has got."""
        if self._sent_revision == self._revision:
            return HEARTBEAT
        self._sent_revision = self._revision
        return HEARTBEAT + id_event(ResumePoint(self._cache.epoch, self._revision))
