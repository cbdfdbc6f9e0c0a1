"""What is known of a set of objects, and how lists and watches change it.

Whatever is delivered twice, late or out of order, nobody is told of an older state of an object
after a newer one: a state counts only if it is newer than the one that is known, than the
deletion of the object, and than the last list.
"""

from collections.abc import Sequence
from typing import Generic, TypeAlias

import msgspec

from podstatus.client.informer.decode import ObjectKey, Sighting, T
from podstatus.client.informer.resource_version import UNKNOWN, ResourceVersion

MOST_TOMBSTONES = 100_000
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


Change: TypeAlias = Added[T] | Updated[T] | Removed[T]
Changes: TypeAlias = tuple[Change[T], ...]


class Listing(msgspec.Struct, Generic[T], frozen=True):
    """A full list."""

    version: ResourceVersion
    items: Sequence[Sighting[T]]
    undecodable: int = 0
    """Items that are there without their content, or not at all, as they have no name or UID."""
    is_whole: bool = True
    """Whether what is not among the items is gone; it may be one that could not be identified."""


class _Known(msgspec.Struct, Generic[T], frozen=True):
    object: T
    version: ResourceVersion
    """Usually the object's own; newer, if the newest state could not be decoded."""


class Replica(Generic[T]):
    """The objects. Changed by one thread; `get` and `objects` may be called by any."""

    def __init__(self) -> None:
        self._known: dict[ObjectKey, _Known[T]] = {}
        self._tombstones: dict[ObjectKey, ResourceVersion] = {}
        self._floor = UNKNOWN
        """Everything up to here was in a list."""

    def get(self, key: ObjectKey) -> T | None:
        """An object, if it is there."""
        known = self._known.get(key)
        return None if known is None else known.object

    def objects(self) -> list[T]:
        """All objects at one moment, in no particular order."""
        # Copying the values is one step; no other thread can come in between.
        return [known.object for known in list(self._known.values())]

    def __len__(self) -> int:
        return len(self._known)

    def see(self, seen: Sighting[T]) -> Changes[T] | None:
        """A watch tells that an object was added or modified.

        None if that is no news: it is a duplicate, or older than what is known.
        """
        known = self._known.get(seen.key)
        if self._is_old(seen, known) or (known is not None and _is_same(seen, known)):
            return None
        return self._put(seen, known)

    def see_deleted(self, seen: Sighting[T]) -> Changes[T] | None:
        """A watch tells that an object is gone; None if that is no news."""
        known = self._known.get(seen.key)
        if self._is_old(seen, known):
            return None
        self._bury(seen)
        return () if known is None else self._remove(seen.key)

    def take(self, listing: Listing[T]) -> Changes[T]:
        """A full list tells what there was at its version; what we know may be newer."""
        if self._floor.is_after(listing.version):
            return ()
        changes: list[Change[T]] = []
        for key in self._unlisted(listing) if listing.is_whole else ():
            changes += self._remove(key)
        for seen in listing.items:
            changes += self._take_item(seen, listing.version)
        self._floor = listing.version
        self._tombstones = {
            key: version
            for key, version in self._tombstones.items()
            if version.is_after(listing.version)
        }
        return tuple(changes)

    def replace(self, listing: Listing[T]) -> Changes[T]:
        """A full list whose version says nothing about what we know: the list is right.

        So it is if versions are no numbers, and if they went back because the server was
        restored or begun anew.
        """
        self._tombstones.clear()
        self._floor = UNKNOWN
        # From here on the floor says which events are old; the versions of before must not.
        for key, known in self._known.items():
            self._known[key] = _Known(known.object, UNKNOWN)
        return self.take(listing)

    def _is_old(self, seen: Sighting[T], known: _Known[T] | None) -> bool:
        """Whether a list, a deletion or what is known came after it, or is the very same."""
        if seen.version.is_covered_by(self._floor):
            return True
        if known is not None and seen.version.is_covered_by(known.version):
            return True
        tombstone = self._tombstones.get(seen.key)
        return tombstone is not None and seen.version.is_covered_by(tombstone)

    def _unlisted(self, listing: Listing[T]) -> list[ObjectKey]:
        """Those that were gone when the list was made."""
        listed = {seen.key for seen in listing.items}
        return [
            key
            for key, known in self._known.items()
            if key not in listed and not known.version.is_after(listing.version)
        ]

    def _take_item(self, seen: Sighting[T], listed: ResourceVersion) -> Changes[T]:
        tombstone = self._tombstones.get(seen.key)
        if tombstone is not None and tombstone.is_after(listed):
            return ()
        known = self._known.get(seen.key)
        if known is not None and (_is_known(seen, known) or _is_same(seen, known)):
            return ()
        return self._put(seen, known)

    def _put(self, seen: Sighting[T], known: _Known[T] | None) -> Changes[T]:
        new = seen.object
        if new is None:
            return () if known is None else self._put_unread(seen, known.object)
        self._known[seen.key] = _Known(new, seen.version)
        if known is None:
            return (Added(new),)
        if known.object.metadata.uid != seen.uid:
            return (Removed(known.object), Added(new))
        return (Updated(known.object, new),)

    def _put_unread(self, seen: Sighting[T], told: T) -> Changes[T]:
        """One that cannot be decoded: what was told of it stays, unless that was another one."""
        if told.metadata.uid != seen.uid:
            self._bury(seen)
            return self._remove(seen.key)
        self._known[seen.key] = _Known(told, seen.version)
        return ()

    def _remove(self, key: ObjectKey) -> Changes[T]:
        return (Removed(self._known.pop(key).object),)

    def _bury(self, seen: Sighting[T]) -> None:
        if seen.version.number is None:
            return
        self._tombstones.pop(seen.key, None)
        self._tombstones[seen.key] = seen.version
        if len(self._tombstones) > MOST_TOMBSTONES:
            del self._tombstones[next(iter(self._tombstones))]


def _is_known(seen: Sighting[T], known: _Known[T]) -> bool:
    """Whether the listed state is an older one, or was decoded when the watch showed it."""
    is_decoded = known.version.text == known.object.metadata.resource_version
    if seen.object is None or is_decoded:
        return seen.version.is_covered_by(known.version)
    return known.version.is_after(seen.version)


def _is_same(seen: Sighting[T], known: _Known[T]) -> bool:
    """Whether it is the very state that was told, also if versions are no numbers."""
    metadata = known.object.metadata
    return metadata.resource_version == seen.version.text and metadata.uid == seen.uid
