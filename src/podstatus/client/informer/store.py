"""What is known of a set of objects, and how lists and watches change it.

Whatever is delivered twice, late or out of order, nobody is told of an older state of an object
after a newer one: a state counts only if it is newer than the one that is known, than the
deletion of the object, and than the last list.
"""

from collections.abc import Sequence
from typing import Generic, TypeAlias

import msgspec

from podstatus.client.informer.decode import ObjectKey, ObjectState, T
from podstatus.client.informer.resource_version import UNKNOWN, ResourceVersion

MAX_TOMBSTONES = 100_000
"""Deletions that are remembered between two lists; then the oldest are forgotten. They matter
only to a watch that repeats what it told so long ago."""


class Added(msgspec.Struct, Generic[T], frozen=True):
    """An object is there that was not."""

    new: T


class Updated(msgspec.Struct, Generic[T], frozen=True):
    """An object changed; `old` is what was told before."""

    old: T
    new: T


class Removed(msgspec.Struct, Generic[T], frozen=True):
    """An object is gone; `last` is what was told before."""

    last: T


ObjectChange: TypeAlias = Added[T] | Updated[T] | Removed[T]
ObjectChanges: TypeAlias = tuple[ObjectChange[T], ...]


class ListResult(msgspec.Struct, Generic[T], frozen=True):
    """A full list."""

    version: ResourceVersion
    items: Sequence[ObjectState[T]]
    undecodable: int = 0
    """Items that are there without their content, or not at all, as they have no name or UID."""
    is_whole: bool = True
    """Whether what is not among the items is gone; it may be one that could not be identified."""


class _StoredObject(msgspec.Struct, Generic[T], frozen=True):
    object: T
    version: ResourceVersion
    """Usually the object's own; newer, if the newest state could not be decoded."""


class ObjectStore(Generic[T]):
    """The objects. Changed by one thread; `get` and `objects` may be called by any."""

    def __init__(self) -> None:
        self._entries: dict[ObjectKey, _StoredObject[T]] = {}
        self._tombstones: dict[ObjectKey, ResourceVersion] = {}
        self._list_version = UNKNOWN
        """Everything up to here was in a list."""

    def get(self, key: ObjectKey) -> T | None:
        """An object, if it is there."""
        known = self._entries.get(key)
        return None if known is None else known.object

    def objects(self) -> list[T]:
        """All objects at one moment, in no particular order."""
        # Copying the values is one step; no other thread can come in between.
        return [known.object for known in list(self._entries.values())]

    def __len__(self) -> int:
        return len(self._entries)

    def upsert(self, state: ObjectState[T]) -> ObjectChanges[T] | None:
        """A watch tells that an object was added or modified.

        None if that is no news: it is a duplicate, or older than what is known.
        """
        known = self._entries.get(state.key)
        if self._is_old(state, known) or (known is not None and _is_same_state(state, known)):
            return None
        return self._put(state, known)

    def delete(self, state: ObjectState[T]) -> ObjectChanges[T] | None:
        """A watch tells that an object is gone; None if that is no news."""
        known = self._entries.get(state.key)
        if self._is_old(state, known):
            return None
        self._add_tombstone(state)
        return () if known is None else self._remove(state.key)

    def apply_list(self, listing: ListResult[T]) -> ObjectChanges[T]:
        """A full list tells what there was at its version; what we know may be newer."""
        if self._list_version.is_after(listing.version):
            return ()
        changes: list[ObjectChange[T]] = []
        for key in self._unlisted(listing) if listing.is_whole else ():
            changes += self._remove(key)
        for seen in listing.items:
            changes += self._apply_item(seen, listing.version)
        self._list_version = listing.version
        self._tombstones = {
            key: version
            for key, version in self._tombstones.items()
            if version.is_after(listing.version)
        }
        return tuple(changes)

    def replace(self, listing: ListResult[T]) -> ObjectChanges[T]:
        """A full list whose version says nothing about what we know: the list is right.

        So it is if versions are no numbers, and if they went back because the server was
        restored or begun anew.
        """
        self._tombstones.clear()
        self._list_version = UNKNOWN
        # From here on the floor says which events are old; the versions of before must not.
        for key, known in self._entries.items():
            self._entries[key] = _StoredObject(known.object, UNKNOWN)
        return self.apply_list(listing)

    def _is_old(self, seen: ObjectState[T], known: _StoredObject[T] | None) -> bool:
        """Whether a list, a deletion or what is known came after it, or is the very same."""
        if seen.version.is_covered_by(self._list_version):
            return True
        if known is not None and seen.version.is_covered_by(known.version):
            return True
        tombstone = self._tombstones.get(seen.key)
        return tombstone is not None and seen.version.is_covered_by(tombstone)

    def _unlisted(self, listing: ListResult[T]) -> list[ObjectKey]:
        """Those that were gone when the list was made."""
        listed = {seen.key for seen in listing.items}
        return [
            key
            for key, known in self._entries.items()
            if key not in listed and not known.version.is_after(listing.version)
        ]

    def _apply_item(self, seen: ObjectState[T], listed: ResourceVersion) -> ObjectChanges[T]:
        tombstone = self._tombstones.get(seen.key)
        if tombstone is not None and tombstone.is_after(listed):
            return ()
        known = self._entries.get(seen.key)
        if known is not None and (_is_not_newer(seen, known) or _is_same_state(seen, known)):
            return ()
        return self._put(seen, known)

    def _put(self, seen: ObjectState[T], known: _StoredObject[T] | None) -> ObjectChanges[T]:
        new = seen.object
        if new is None:
            return () if known is None else self._put_undecodable(seen, known.object)
        self._entries[seen.key] = _StoredObject(new, seen.version)
        if known is None:
            return (Added(new),)
        if known.object.metadata.uid != seen.uid:
            return (Removed(known.object), Added(new))
        return (Updated(known.object, new),)

    def _put_undecodable(self, seen: ObjectState[T], told: T) -> ObjectChanges[T]:
        """One that cannot be decoded: what was told of it stays, unless that was another one."""
        if told.metadata.uid != seen.uid:
            self._add_tombstone(seen)
            return self._remove(seen.key)
        self._entries[seen.key] = _StoredObject(told, seen.version)
        return ()

    def _remove(self, key: ObjectKey) -> ObjectChanges[T]:
        return (Removed(self._entries.pop(key).object),)

    def _add_tombstone(self, seen: ObjectState[T]) -> None:
        if seen.version.number is None:
            return
        self._tombstones.pop(seen.key, None)
        self._tombstones[seen.key] = seen.version
        if len(self._tombstones) > MAX_TOMBSTONES:
            del self._tombstones[next(iter(self._tombstones))]


def _is_not_newer(seen: ObjectState[T], known: _StoredObject[T]) -> bool:
    """Whether the listed state is an older one, or was decoded when the watch showed it."""
    is_decoded = known.version.text == known.object.metadata.resource_version
    if seen.object is None or is_decoded:
        return seen.version.is_covered_by(known.version)
    return known.version.is_after(seen.version)


def _is_same_state(seen: ObjectState[T], known: _StoredObject[T]) -> bool:
    """Whether it is the very state that was told, also if versions are no numbers."""
    metadata = known.object.metadata
    return metadata.resource_version == seen.version.text and metadata.uid == seen.uid
