"""Stream the snapshot cache to a client: all pods, then their changes.

There is no queue per client. A client that has read everything gets what changed since, each pod
once in its current state: a slow client skips intermediate states, and never gets an old state
after a newer one.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from enum import Enum

import msgspec

from podstatus.base.clock import Clock
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.time import Time
from podstatus.observe.snapshot_cache import ChangedPods, PodTombstone, SnapshotCache
from podstatus.observe.summary.pod import PodSummary
from podstatus.web.v1.filters import PodFilter
from podstatus.web.v1.wire import DeletedEvent, ResetEvent, SyncedEvent, pod_view
from podstatus.web.watch.request import ResumePoint, WatchRequest
from podstatus.web.watch.sse import HEARTBEAT, encode_event, id_event, with_id

_CHUNK_BYTES = 32 * 2**10
"""Approximate size of one write."""
_FRESH_NANOS = 2 * 1_000_000_000


class WatchTiming(msgspec.Struct, frozen=True, kw_only=True):
    """How often events and heartbeats are sent."""

    batch_seconds: float = 0.05
    """How long to collect changes that are sent together."""
    heartbeat_seconds: float = 15.0
    """Time without an event after which a comment is sent."""


class WatchAction(Enum):
    """The event to send to a client."""

    POD = "pod"
    DELETED = "deleted"
    NOTHING = "nothing"


class PodSelection:
    """Tracks which pods a client has, where the filter alone does not tell.

    A pod that stops matching is reported as deleted if the client may have it: it was sent on this
    connection, or perhaps on an earlier one that this one resumes.
    """

    def __init__(self, filter_: PodFilter, *, resumed: bool) -> None:
        self._filter = filter_
        self._resumed = resumed
        self._can_change = filter_ != PodFilter(namespace=filter_.namespace)
        """Whether a pod can start or stop matching."""
        self._client_has: dict[PodUID, bool] = {}
        """By pod; empty if the filter cannot change its result."""

    def on_pod(self, pod: PodSummary, now: Time) -> WatchAction:
        """The event for a pod in a new state."""
        if self._filter.namespace not in ("", pod.namespace):
            return WatchAction.NOTHING
        if not self._can_change:
            return WatchAction.POD
        has = self._client_has.get(pod.uid, self._resumed)
        matches = self._client_has[pod.uid] = self._filter.matches(pod, now)
        if matches:
            return WatchAction.POD
        return WatchAction.DELETED if has else WatchAction.NOTHING

    def on_deleted(self, deleted: PodTombstone) -> WatchAction:
        if self._filter.namespace not in ("", deleted.namespace):
            return WatchAction.NOTHING
        has = not self._can_change or self._client_has.pop(deleted.uid, self._resumed)
        return WatchAction.DELETED if has else WatchAction.NOTHING


class PodEventCache:
    """Encoded pod events, shared by all clients.

    Entries are discarded after 2 to 4 s, since an event contains the health at the time of
    encoding. So the cache holds only pods that were sent within that time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._new: dict[int, bytes] = {}
        self._old: dict[int, bytes] = {}
        self._generation_started_at = 0

    def get(self, revision: int, pod: PodSummary) -> bytes:
        """The event of the pod in the state that it has since this revision."""
        self._expire()
        body = self._new.get(revision) or self._old.get(revision)
        if body is None:
            now = Time.from_unix_nanos(self._clock.now())
            body = self._new[revision] = encode_event(pod_view(pod, now))
        return body

    def clear(self) -> None:
        """Discard all entries: there are no clients."""
        self._new, self._old = {}, {}

    def _expire(self) -> None:
        now = self._clock.monotonic()
        age = now - self._generation_started_at
        if age <= _FRESH_NANOS:
            return
        self._new, self._old = {}, self._new if age <= 2 * _FRESH_NANOS else {}
        self._generation_started_at = now


class PodStream:
    """The events of one client."""

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
        """All changes up to this revision have been processed."""
        self._sent_revision = 0
        """The revision of the last id that was sent."""

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield encoded events without end, and a heartbeat when there is none."""
        is_reconnect = self._request.after is not None
        after, is_first = self._resume(), True
        while True:
            changed = self._cache.changed_since(after)
            if changed.reset:
                self._selection = PodSelection(self._request.filter, resumed=False)
            if changed.reset and is_reconnect:
                yield self._event(encode_event(ResetEvent(reason=_reset_reason(after))))
            for chunk in self._changes(changed):
                yield chunk
            after = self._revision = changed.revision
            if is_first or changed.reset:
                yield self._event(encode_event(SyncedEvent(resumed=not changed.reset)))
            is_reconnect, is_first = True, False
            while not await self._wait_for_changes(after):
                yield self._heartbeat()

    def _resume(self) -> int | None:
        after = self._request.after
        if after is None or after.epoch != self._cache.epoch:
            return None
        self._revision = after.revision
        return after.revision

    async def _wait_for_changes(self, after: int) -> bool:
        """Wait for a change, then collect others for `batch_seconds`; False for a heartbeat."""
        try:
            async with asyncio.timeout(self._timing.heartbeat_seconds):
                await self._cache.wait(after)
        except TimeoutError:
            return False
        await self._clock.wait(self._timing.batch_seconds)
        return True

    def _changes(self, changed: ChangedPods) -> Iterator[bytes]:
        """Their events in chunks; the last event has the revision of all changes."""
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
        """Deletions first, so that a recreated pod exists in the end.

        A pod may have changed again since: its current state is sent now, and again for the later
        change, so that a client that is disconnected in between misses nothing.
        """
        for _, deleted in changed.deleted:
            if self._selection.on_deleted(deleted) is WatchAction.DELETED:
                yield _deleted_event(deleted)
        now = Time.from_unix_nanos(self._clock.now())
        for uid in changed.pods:
            entry = self._cache.find(uid)
            if entry is None:
                continue
            revision, pod = entry
            if revision <= changed.revision:
                self._revision = revision
            match self._selection.on_pod(pod, now):
                case WatchAction.POD:
                    yield self._event_cache.get(revision, pod)
                case WatchAction.DELETED:
                    yield _deleted_event(pod)

    def _event(self, body: bytes) -> bytes:
        self._sent_revision = self._revision
        return with_id(ResumePoint(self._cache.epoch, self._revision), body)

    def _heartbeat(self) -> bytes:
        """A comment, with the current id if other clients' pods have moved the revision on."""
        if self._sent_revision == self._revision:
            return HEARTBEAT
        self._sent_revision = self._revision
        return HEARTBEAT + id_event(ResumePoint(self._cache.epoch, self._revision))


def _reset_reason(after: int | None) -> str:
    if after is None:
        return "the server was restarted since the given id"
    return "the given id is too old: not all deletions since are known"


def _deleted_event(pod: PodSummary | PodTombstone) -> bytes:
    return encode_event(DeletedEvent(uid=pod.uid, namespace=pod.namespace, name=pod.name))
