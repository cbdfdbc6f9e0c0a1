"""What a reflector knows and tells: state that lists and events change in one step."""

import logging
import math
from collections.abc import Callable
from typing import Generic

from podstatus.client.informer.decode import (
    ObjectState,
    T,
    key_of,
    read_bookmark,
    read_metadata,
    read_object,
)
from podstatus.client.informer.listwatch import ObjectSelection
from podstatus.client.informer.position import WatchPosition
from podstatus.client.informer.reflector_counts import ReflectorCounts
from podstatus.client.informer.resource_version import ResourceVersion
from podstatus.client.informer.store import (
    Added,
    ListResult,
    ObjectChange,
    ObjectChanges,
    ObjectStore,
    Removed,
    Updated,
)
from podstatus.client.informer.transform import Transform
from podstatus.client.rest import watch
from podstatus.client.rest.watch import WatchEvent

logger = logging.getLogger(__name__)

_SECOND = 1_000_000_000


class ReflectorState(Generic[T]):
    """A copy of a set of objects, how far it goes, and a handler that is told of changes.

    Nothing here waits.
    """

    def __init__(
        self,
        selection: ObjectSelection,
        kind: type[T] | Transform[T],
        handler: Callable[[ObjectChange[T]], None],
    ) -> None:
        self._selection = selection
        self._kind = kind
        self._handler = handler
        self._confirmed_at: int | None = None
        self.store = ObjectStore[T]()
        self.position = WatchPosition()
        self.needs_relist = False
        """Whether something since the last list, or in it, could not be decoded or came out of
        order, so that the copy may be wrong until the next list."""
        self._counts = dict.fromkeys(ReflectorCounts.__struct_fields__, 0)

    def staleness(self, now: int) -> float:
        """Seconds since something confirmed the copy; infinite before the first list."""
        return (
            math.inf if self._confirmed_at is None else max(0, now - self._confirmed_at) / _SECOND
        )

    @property
    def counts(self) -> ReflectorCounts:
        """What was counted until now."""
        return ReflectorCounts(**self._counts)

    def count(self, **more: int) -> None:
        """Add to some of the counts."""
        for name, number in more.items():
            self._counts[name] += number

    def apply_list(
        self, listing: ListResult[T], requested_at: int, newest: ResourceVersion, *, beside: bool
    ) -> bool:
        """Take over a list that was asked for at a time, when `newest` was the newest version.

        Taken `beside` a watch, it shows what the watch misses. Returns whether the watch has to
        begin anew from the list, as the versions of the two cannot be compared.
        """
        self._confirm(requested_at)
        self.count(lists=1, undecodable=listing.undecodable)
        self.needs_relist = listing.undecodable > 0
        if listing.undecodable:
            logger.warning(
                "list has objects that cannot be decoded: %s count=%d",
                self._selection,
                listing.undecodable,
            )
        if listing.version.number is None or newest.is_after(listing.version):
            self._reset(listing, newest)
            return True
        changes = self.store.apply_list(listing)
        if beside and not self.position.must_list:
            self.position.record_list(listing.version, changes)
            self._count_missed()
        else:
            self.position.begin_at(listing.version)
        self._notify(changes)
        return False

    def apply_event(self, event: WatchEvent, now: int) -> bool:
        """Take over an event; returns whether the watch has come further by it."""
        self._confirm(now)
        if event.type == watch.BOOKMARK:
            version = read_bookmark(event.object)
            self.count(bookmarks=1)
            return version is not None and self._advance(version)
        is_deleted = event.type == watch.DELETED
        seen = self._read(event)
        self._counts["events"] += 1
        if seen is None or not self._selection.has(seen.key):
            self._count_undecodable()
            logger.warning("event cannot be read, skipped: %s type=%s", self._selection, event.type)
            return False
        changes = self.store.delete(seen) if is_deleted else self.store.upsert(seen)
        if changes is None:
            self.count(duplicates=1)
        elif seen.object is None and not is_deleted:
            self._skip_object(seen)
        if not is_deleted and self.position.is_past(seen.version):
            # A watch delivers versions in order, so this one or an earlier one is wrong.
            self.needs_relist = True
        self.position.record_event(seen.key, seen.version, deleted=is_deleted)
        is_further = self._advance(seen.version)
        self._notify(changes or ())
        return is_further

    def _read(self, event: WatchEvent) -> ObjectState[T] | None:
        """What an event tells; of a deletion, that it was one is enough."""
        match event.type:
            case watch.DELETED:
                return read_metadata(event.object)
            case watch.ADDED | watch.MODIFIED:
                return read_object(event.object, self._kind)
        return None

    def _advance(self, version: ResourceVersion) -> bool:
        is_further = self.position.advance(version)
        self._count_missed()
        return is_further

    def _count_missed(self) -> None:
        missed = self.position.pop_missed()
        if missed:
            self.count(missed=missed)
            logger.warning(
                "watch missed changes, a list has shown them: %s count=%d", self._selection, missed
            )

    def _count_undecodable(self) -> None:
        self.count(undecodable=1)
        self.needs_relist = True

    def _skip_object(self, state: ObjectState[T]) -> None:
        self._count_undecodable()
        logger.warning(
            "object cannot be decoded, skipped: %s namespace=%s name=%s version=%s",
            self._selection,
            *state.key,
            state.version.text,
        )

    def _reset(self, listing: ListResult[T], newest: ResourceVersion) -> None:
        if newest.is_after(listing.version):
            logger.warning(
                "resource versions went back, as if the server was restored: %s from=%s to=%s",
                self._selection,
                newest.text,
                listing.version.text,
            )
        changes = self.store.replace(listing)
        self.position.begin_at(listing.version)
        self._notify(changes)

    def _confirm(self, now: int) -> None:
        self._confirmed_at = now if self._confirmed_at is None else max(now, self._confirmed_at)

    def _notify(self, changes: ObjectChanges[T]) -> None:
        for change in changes:
            try:
                self._handler(change)
            except Exception:
                self.count(handler_failures=1)
                logger.exception("handler failed: %s %s", self._selection, _describe(change))


def _describe(change: ObjectChange[T]) -> str:
    match change:
        case Added(object_) | Updated(_, object_) | Removed(object_):
            namespace, name = key_of(object_)
            return f"change={type(change).__name__} namespace={namespace} name={name}"
