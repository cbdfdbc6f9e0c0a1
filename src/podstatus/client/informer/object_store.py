"""The copied objects, and how lists and watch events change them.

Even if data arrives twice, late or out of order, the handler never sees an older state of an object
after a newer one: a state is only applied if it is newer than the stored one, than the deletion of
the object, and than the last list.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeAlias

import msgspec

from podstatus.client.informer.decode import ObjectKey, ObjectState, T
from podstatus.client.informer.resource_version import UNKNOWN, ResourceVersion

MAX_TOMBSTONES = 100_000
"""Deletions that are recorded between two lists; beyond that, the oldest are dropped. They only
matter for a watch that repeats events from long ago."""


class Added(msgspec.Struct, Generic[T], frozen=True):
    """An object was added to the copy."""

    new: T


class Updated(msgspec.Struct, Generic[T], frozen=True):
    """An object changed; `old` is the last state that the handler got."""

    old: T
    new: T


class Removed(msgspec.Struct, Generic[T], frozen=True):
    """An object was deleted; `last` is the last state that the handler got."""

    last: T


ObjectChange: TypeAlias = Added[T] | Updated[T] | Removed[T]
ObjectChanges: TypeAlias = tuple[ObjectChange[T], ...]


def change_handler(
    update: Callable[[T], None], remove: Callable[[T], None]
) -> Callable[[ObjectChange[T]], None]:
    """Return a reflector handler that calls `update` or `remove` with the object."""

    def handle(change: ObjectChange[T]) -> None:
        match change:
            case Added(new) | Updated(_, new):
                update(new)
            case Removed(last):
                remove(last)

    return handle


class ListResult(msgspec.Struct, Generic[T], frozen=True):
    """The content of a full list."""

    version: ResourceVersion
    items: Sequence[ObjectState[T]]
    undecodable: int = 0
    """Items without content, and items that were dropped because they have no name or UID."""
    is_whole: bool = True
    """Whether objects that are not among the items are gone; False if items were dropped."""


class _StoredObject(msgspec.Struct, Generic[T], frozen=True):
    object: T
    version: ResourceVersion
    """Usually the object's own version; a newer one if the newest state was undecodable."""


class ObjectStore(Generic[T]):
    """The copied objects. One thread makes changes; `get` and `objects` are thread-safe."""

    def __init__(self) -> None:
        self._entries: dict[ObjectKey, _StoredObject[T]] = {}
        self._tombstones: dict[ObjectKey, ResourceVersion] = {}
        self._list_version = UNKNOWN
        """All states up to this version are covered by a list."""

    def get(self, key: ObjectKey) -> T | None:
        stored = self._entries.get(key)
        return None if stored is None else stored.object

    def objects(self) -> list[T]:
        """Return a snapshot of all objects, in no particular order."""
        # Copying the values is atomic: no other thread can run in between.
        return [stored.object for stored in list(self._entries.values())]

    def __len__(self) -> int:
        return len(self._entries)

    def upsert(self, state: ObjectState[T]) -> ObjectChanges[T] | None:
        """Apply an ADDED or MODIFIED event; return the changes.

        Returns None if the event is a duplicate or older than the stored state.
        """
        stored = self._entries.get(state.key)
        if self._is_old(state, stored) or (stored is not None and _is_same_state(state, stored)):
            return None
        return self._put(state, stored)

    def delete(self, state: ObjectState[T]) -> ObjectChanges[T] | None:
        """Apply a DELETED event; return the changes, or None if it is a duplicate or old."""
        stored = self._entries.get(state.key)
        if self._is_old(state, stored):
            return None
        self._add_tombstone(state)
        return () if stored is None else self._remove(state.key)

    def apply_list(self, listing: ListResult[T]) -> ObjectChanges[T]:
        """Apply a full list, except for objects whose stored state is newer."""
        if self._list_version.is_after(listing.version):
            return ()
        changes: list[ObjectChange[T]] = []
        for key in self._unlisted(listing) if listing.is_whole else ():
            changes += self._remove(key)
        for state in listing.items:
            changes += self._apply_item(state, listing.version)
        self._list_version = listing.version
        self._tombstones = {
            key: version
            for key, version in self._tombstones.items()
            if version.is_after(listing.version)
        }
        return tuple(changes)

    def replace(self, listing: ListResult[T]) -> ObjectChanges[T]:
        """Apply a full list whose version cannot be compared with the stored ones.

        This is so if versions are not numbers, and if they went back because the server was
        restored or recreated.
        """
        self._tombstones.clear()
        self._list_version = UNKNOWN
        # From now on the list's version decides which events are old, not the previous versions.
        for key, stored in self._entries.items():
            self._entries[key] = _StoredObject(stored.object, UNKNOWN)
        return self.apply_list(listing)

    def _is_old(self, state: ObjectState[T], stored: _StoredObject[T] | None) -> bool:
        """Whether a list, a deletion or the stored state covers this state."""
        if state.version.is_covered_by(self._list_version):
            return True
        if stored is not None and state.version.is_covered_by(stored.version):
            return True
        tombstone = self._tombstones.get(state.key)
        return tombstone is not None and state.version.is_covered_by(tombstone)

    def _unlisted(self, listing: ListResult[T]) -> list[ObjectKey]:
        """Return the keys of stored objects that did not exist at the list's version."""
        listed = {state.key for state in listing.items}
        return [
            key
            for key, stored in self._entries.items()
            if key not in listed and not stored.version.is_after(listing.version)
        ]

    def _apply_item(self, state: ObjectState[T], listed: ResourceVersion) -> ObjectChanges[T]:
        tombstone = self._tombstones.get(state.key)
        if tombstone is not None and tombstone.is_after(listed):
            return ()
        stored = self._entries.get(state.key)
        if stored is not None and (_is_not_newer(state, stored) or _is_same_state(state, stored)):
            return ()
        return self._put(state, stored)

    def _put(self, state: ObjectState[T], stored: _StoredObject[T] | None) -> ObjectChanges[T]:
        new = state.object
        if new is None:
            return () if stored is None else self._put_undecodable(state, stored.object)
        self._entries[state.key] = _StoredObject(new, state.version)
        if stored is None:
            return (Added(new),)
        if stored.object.metadata.uid != state.uid:
            return (Removed(stored.object), Added(new))
        return (Updated(stored.object, new),)

    def _put_undecodable(self, state: ObjectState[T], stored: T) -> ObjectChanges[T]:
        """Keep the stored object with the newer version; remove it if its UID differs."""
        if stored.metadata.uid != state.uid:
            self._add_tombstone(state)
            return self._remove(state.key)
        self._entries[state.key] = _StoredObject(stored, state.version)
        return ()

    def _remove(self, key: ObjectKey) -> ObjectChanges[T]:
        return (Removed(self._entries.pop(key).object),)

    def _add_tombstone(self, state: ObjectState[T]) -> None:
        if state.version.number is None:
            return
        self._tombstones.pop(state.key, None)
        self._tombstones[state.key] = state.version
        if len(self._tombstones) > MAX_TOMBSTONES:
            del self._tombstones[next(iter(self._tombstones))]


def _is_not_newer(state: ObjectState[T], stored: _StoredObject[T]) -> bool:
    """Whether the listed state is older, or equal and already decoded."""
    is_decoded = stored.version.text == stored.object.metadata.resource_version
    if state.object is None or is_decoded:
        return state.version.is_covered_by(stored.version)
    return stored.version.is_after(state.version)


def _is_same_state(state: ObjectState[T], stored: _StoredObject[T]) -> bool:
    """Whether this is exactly the stored state, also if versions are not numbers."""
    metadata = stored.object.metadata
    return metadata.resource_version == state.version.text and metadata.uid == state.uid
