"""Who watches what: changes are remembered for a while and handed to everybody concerned.

A watcher has a queue of bounded size. One that does not read is cut off when it is full, and
has to list anew; nobody else waits for it.
"""

import asyncio
from collections import deque
from collections.abc import Callable

import msgspec
from msgspec import structs

from podstatus.apiserver.storage.store import ADDED, DELETED, MODIFIED, Change, Key, Stored

MOST_CHANGES = 10_000
"""How many changes of each resource are remembered. Upstream's watch cache grows to 100 times
100; who falls back further has to list anew."""
MOST_KEPT_BYTES = 64 * 2**20
"""How much of each resource is remembered, whatever the number: objects can be large."""
MOST_BYTES = 16 * 2**20
"""How much a watcher may have waiting."""

Selects = Callable[[Stored], bool]


class TooOldError(Exception):
    """Changes since that version are not known any more."""


class Event:
    """A change as one watcher sees it."""

    __slots__ = ("object", "type", "version")

    def __init__(self, type_: str, stored: Stored, version: int) -> None:
        self.type = type_
        self.object = stored
        self.version = version


class Watcher:
    """One who watches. Read by one task: `await changes()` until it returns nothing."""

    def __init__(
        self,
        selects: Selects,
        namespace: str | None,
        most_bytes: int,
        on_overflow: Callable[[], None],
    ) -> None:
        self._selects = selects
        self._namespace = namespace
        self._most_bytes = most_bytes
        self._on_overflow = on_overflow
        self._queue: list[Event] = []
        self._size = 0
        self._news = asyncio.Event()
        self.is_cut_off = False

    @property
    def is_waiting(self) -> bool:
        """Whether something has come that was not taken yet."""
        return self._news.is_set()

    def offer(self, change: Change) -> None:
        """Queue a change, if it concerns this watcher."""
        if self._namespace is not None and change.new.key.namespace != self._namespace:
            return
        event = selected(change, self._selects)
        if event is None or self.is_cut_off:
            return
        self._size += len(event.object.data)
        if self._size > self._most_bytes:
            self.cut_off()
            self._on_overflow()
            return
        self._queue.append(event)
        self._news.set()

    def cut_off(self) -> None:
        """End it: nothing more will come, and what waits is dropped."""
        self.is_cut_off = True
        self._queue.clear()
        self._news.set()

    async def changes(self) -> list[Event]:
        """What has come, as soon as there is something; nothing if it was cut off."""
        await self._news.wait()
        events, self._queue, self._size = self._queue, [], 0
        if not self.is_cut_off:
            self._news.clear()
        return events


def selected(change: Change, selects: Selects) -> Event | None:
    """The change as somebody sees it who sees only what is selected.

    What comes into the selection is added, what leaves it is deleted, as it was before with
    the version of the change.
    """
    after = change.type != DELETED and selects(change.new)
    before = change.old is not None and selects(change.old)
    if after:
        return Event(MODIFIED if before else ADDED, change.new, change.version)
    if change.old is None or not before:
        return None
    last = change.new if change.type == DELETED else _with_version(change.old, change.version)
    return Event(DELETED, last, change.version)


def _with_version(stored: Stored, version: int) -> Stored:
    document = stored.document()
    document["metadata"]["resourceVersion"] = str(version)
    return structs.replace(stored, version=version, data=msgspec.json.encode(document))


def _ignore() -> None:
    """Nobody is to be told."""


class Hub:
    """Changes of all resources, and all watchers."""

    def __init__(
        self,
        version: int,
        *,
        most_changes: int = MOST_CHANGES,
        most_kept_bytes: int = MOST_KEPT_BYTES,
    ) -> None:
        self._most_changes = most_changes
        self._most_kept_bytes = most_kept_bytes
        self._sizes: dict[str, int] = {}
        self._changes: dict[str, deque[Change]] = {}
        self._forgotten: dict[str, int] = {}
        """By resource, the version of the last change that is not known any more."""
        self._begin = version
        self._watchers: dict[str, set[Watcher]] = {}

    def publish(self, resource: str, change: Change) -> None:
        """Remember a change and tell the watchers."""
        changes = self._changes.setdefault(resource, deque())
        changes.append(change)
        size = self._sizes.get(resource, 0) + len(change.new.data)
        while len(changes) > self._most_changes or size > self._most_kept_bytes:
            forgotten = changes.popleft()
            self._forgotten[resource] = forgotten.version
            size -= len(forgotten.new.data)
        self._sizes[resource] = size
        for watcher in self._watchers.get(resource, ()):
            watcher.offer(change)

    def since(self, resource: str, version: int) -> list[Change]:
        """The changes after a version. Raises TooOldError."""
        if version < self._forgotten.get(resource, self._begin):
            raise TooOldError
        changes = []
        for change in reversed(self._changes.get(resource, ())):
            if change.version <= version:
                break
            changes.append(change)
        return changes[::-1]

    def compact(self) -> None:
        """Forget all changes: who is behind must list anew."""
        for resource, changes in self._changes.items():
            if changes:
                self._forgotten[resource] = changes[-1].version
                self._begin = max(self._begin, changes[-1].version)
                changes.clear()
                self._sizes[resource] = 0

    def watch(
        self,
        resource: str,
        selects: Selects,
        *,
        namespace: str | None,
        most_bytes: int | None = None,
        on_overflow: Callable[[], None] = _ignore,
    ) -> Watcher:
        """Begin to watch; to be ended by `unwatch`.

        `on_overflow` is called if it does not read in time: whoever sends to it need not go on.
        """
        most_bytes = MOST_BYTES if most_bytes is None else most_bytes
        watcher = Watcher(selects, namespace, most_bytes, on_overflow)
        self._watchers.setdefault(resource, set()).add(watcher)
        return watcher

    def unwatch(self, resource: str, watcher: Watcher) -> None:
        """End a watch."""
        self._watchers.get(resource, set()).discard(watcher)

    def cut_off_all(self) -> None:
        """End all watches."""
        for watchers in self._watchers.values():
            for watcher in watchers:
                watcher.cut_off()

    def state_at(self, resource: str, version: int, now: dict[Key, Stored]) -> dict[Key, Stored]:
        """The objects as they were at a version, from what they are now. Raises TooOldError."""
        state = dict(now)
        for change in reversed(self.since(resource, version)):
            if change.old is None:
                state.pop(change.new.key, None)
            else:
                state[change.new.key] = change.old
        return state
