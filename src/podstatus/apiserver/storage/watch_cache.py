"""The watch cache: recent changes per resource, and the watchers they are sent to.

Each watcher has a bounded queue. A watcher that does not read is terminated when its queue is full,
and its client has to list again; other watchers are not delayed.
"""

import asyncio
from collections import deque
from collections.abc import Callable

import msgspec
from msgspec import structs

from podstatus.apiserver.storage.store import (
    ADDED,
    DELETED,
    MODIFIED,
    StorageKey,
    StoreChange,
    StoredObject,
)

MAX_CHANGES = 10_000
"""How many changes to cache per resource, as upstream's watch cache at its largest (100 x 100).

A client that is further behind has to list again.
"""
MAX_CACHED_BYTES = 64 * 2**20
"""How many bytes to cache per resource, whatever the number of changes: objects can be large."""
MAX_QUEUED_BYTES = 16 * 2**20
"""How many bytes a watcher may have queued."""

SelectionPredicate = Callable[[StoredObject], bool]
WatchCacheEvent = tuple[str, StoredObject]
"""A change as one watcher sees it: the type of the event, and the object."""


class ResourceVersionTooOldError(Exception):
    """The changes since that version are no longer cached."""


class CacheWatcher:
    """A watch of one client.

    Read by one task: `await next_events()` until it returns an empty list.
    """

    def __init__(
        self,
        predicate: SelectionPredicate,
        namespace: str | None,
        on_overflow: Callable[[], None],
    ) -> None:
        self._predicate = predicate
        self._namespace = namespace
        self._on_overflow = on_overflow
        self._queue: list[WatchCacheEvent] = []
        self._size = 0
        self._ready = asyncio.Event()
        self.is_terminated = False

    @property
    def has_events(self) -> bool:
        """Whether events are queued, or the watch is terminated."""
        return self._ready.is_set()

    def enqueue(self, change: StoreChange) -> None:
        """Queue a change if it matches the namespace and the predicate."""
        if self._namespace is not None and change.new.key.namespace != self._namespace:
            return
        event = filter_change(change, self._predicate)
        if event is None or self.is_terminated:
            return
        _, stored = event
        self._size += len(stored.data)
        if self._size > MAX_QUEUED_BYTES:
            self.terminate()
            self._on_overflow()
            return
        self._queue.append(event)
        self._ready.set()

    def terminate(self) -> None:
        """Terminate the watch and drop queued events."""
        self.is_terminated = True
        self._queue.clear()
        self._ready.set()

    async def next_events(self) -> list[WatchCacheEvent]:
        """Wait for events and return them; an empty list after termination."""
        await self._ready.wait()
        events, self._queue, self._size = self._queue, [], 0
        if not self.is_terminated:
            self._ready.clear()
        return events


def filter_change(change: StoreChange, predicate: SelectionPredicate) -> WatchCacheEvent | None:
    """Return the change as a filtered watch sees it, None if it does not.

    An object that enters the selection is ADDED; one that leaves it is DELETED, with its old state
    and the version of the change.
    """
    after = change.type != DELETED and predicate(change.new)
    before = change.old is not None and predicate(change.old)
    if after:
        return MODIFIED if before else ADDED, change.new
    if change.old is None or not before:
        return None
    last = change.new if change.type == DELETED else _with_version(change.old, change.version)
    return DELETED, last


def _with_version(stored: StoredObject, version: int) -> StoredObject:
    document = stored.document()
    document["metadata"]["resourceVersion"] = str(version)
    return structs.replace(stored, version=version, data=msgspec.json.encode(document))


class WatchCache:
    """Cached changes and watchers of all resources. Not thread-safe."""

    def __init__(self, version: int) -> None:
        self._sizes: dict[str, int] = {}
        self._changes: dict[str, deque[StoreChange]] = {}
        self._compacted_versions: dict[str, int] = {}
        """By resource: version of the last change that is no longer cached."""
        self._start_version = version
        self._watchers: dict[str, set[CacheWatcher]] = {}
        self._is_closed = False

    def publish(self, resource: str, change: StoreChange) -> None:
        """Cache a change and queue it for the watchers."""
        changes = self._changes.setdefault(resource, deque())
        changes.append(change)
        size = self._sizes.get(resource, 0) + len(change.new.data)
        while len(changes) > MAX_CHANGES or size > MAX_CACHED_BYTES:
            oldest = changes.popleft()
            self._compacted_versions[resource] = oldest.version
            size -= len(oldest.new.data)
        self._sizes[resource] = size
        for watcher in self._watchers.get(resource, ()):
            watcher.enqueue(change)

    def events_since(self, resource: str, version: int) -> list[StoreChange]:
        """Return the changes after a version. Raises ResourceVersionTooOldError."""
        if version < self._compacted_versions.get(resource, self._start_version):
            raise ResourceVersionTooOldError
        changes = []
        for change in reversed(self._changes.get(resource, ())):
            if change.version <= version:
                break
            changes.append(change)
        return changes[::-1]

    def compact(self) -> None:
        """Drop all cached changes: clients that are behind have to list again."""
        for resource, changes in self._changes.items():
            if changes:
                self._compacted_versions[resource] = changes[-1].version
                self._start_version = max(self._start_version, changes[-1].version)
                changes.clear()
                self._sizes[resource] = 0

    def watch(
        self,
        resource: str,
        predicate: SelectionPredicate,
        *,
        namespace: str | None,
        on_overflow: Callable[[], None] = lambda: None,
    ) -> CacheWatcher:
        """Start a watch; the caller ends it with `unwatch`.

        `on_overflow` is called when the queue is full, so that the sender can stop.
        """
        watcher = CacheWatcher(predicate, namespace, on_overflow)
        self._watchers.setdefault(resource, set()).add(watcher)
        if self._is_closed:
            watcher.terminate()
        return watcher

    def unwatch(self, resource: str, watcher: CacheWatcher) -> None:
        """End a watch; unknown watchers are ignored."""
        self._watchers.get(resource, set()).discard(watcher)

    def close(self) -> None:
        """End all watches, also those that clients start from now on."""
        self._is_closed = True
        for watchers in self._watchers.values():
            for watcher in watchers:
                watcher.terminate()

    def state_at(
        self, resource: str, version: int, now: dict[StorageKey, StoredObject]
    ) -> dict[StorageKey, StoredObject]:
        """Return the objects at a version, given those of now.

        Raises ResourceVersionTooOldError.
        """
        state = dict(now)
        for change in reversed(self.events_since(resource, version)):
            if change.old is None:
                state.pop(change.new.key, None)
            else:
                state[change.new.key] = change.old
        return state
