"""The state of a reflector, which lists and events change synchronously, and its counters."""

import logging
import math
from collections.abc import Callable
from typing import Generic

import msgspec

from podstatus.client.informer.decode import (
    ObjectState,
    T,
    key_of,
    read_bookmark,
    read_metadata,
    read_object,
)
from podstatus.client.informer.list_watch_calls import ObjectSelection
from podstatus.client.informer.object_store import (
    Added,
    ListResult,
    ObjectChange,
    ObjectChanges,
    ObjectStore,
    Removed,
    Updated,
)
from podstatus.client.informer.position import WatchPosition
from podstatus.client.informer.resource_version import ResourceVersion
from podstatus.client.informer.transform import Transform
from podstatus.client.rest import watch_events as watch
from podstatus.client.rest.watch_events import WatchEvent

logger = logging.getLogger(__name__)

_SECOND = 1_000_000_000


class ReflectorCounts(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot of a reflector's counters."""

    lists: int = 0
    """Full lists that were applied."""
    watches: int = 0
    """Watch streams that were opened."""
    events: int = 0
    """Watch events without bookmarks."""
    bookmarks: int = 0
    duplicates: int = 0
    """Events without news: seen before, older than the copy, or covered by a list."""
    undecodable: int = 0
    """Objects that could not be decoded; each occurrence counts."""
    missed: int = 0
    """Changes that only a full list has shown after the watch had passed their version."""
    expired: int = 0
    """Watches whose start version had expired (410)."""
    silences: int = 0
    """Watch streams that were reopened after the idle timeout."""
    failures: int = 0
    """Failed attempts to list or watch."""
    handler_failures: int = 0


class ReflectorState(Generic[T]):
    """The copied objects, the position of the watch, and the handler for changes.

    No method awaits or blocks. Times are monotonic nanoseconds.
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
        """Whether an object since or in the last list was undecodable or out of order, so that the
        copy may be wrong until the next list."""
        self._counts = dict.fromkeys(ReflectorCounts.__struct_fields__, 0)

    def staleness(self, now: int) -> float:
        """Return the seconds since the copy was confirmed; infinite before the first list."""
        return (
            math.inf if self._confirmed_at is None else max(0, now - self._confirmed_at) / _SECOND
        )

    @property
    def counts(self) -> ReflectorCounts:
        return ReflectorCounts(**self._counts)

    def count(self, **more: int) -> None:
        """Add to the counters with these names."""
        for name, number in more.items():
            self._counts[name] += number

    def apply_list(
        self, listing: ListResult[T], requested_at: int, newest: ResourceVersion, *, beside: bool
    ) -> bool:
        """Apply a list; `newest` was the newest version when the list was requested.

        A list that was taken `beside` a watch shows what the watch misses. Returns whether the
        watch has to restart from the list, as their versions cannot be compared.
        """
        self._confirm(requested_at)
        self.count(lists=1, undecodable=listing.undecodable)
        self.needs_relist = listing.undecodable > 0
        if listing.undecodable:
            logger.warning(
                "list contains objects that cannot be decoded: %s count=%d",
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
        """Apply an event; return whether it advanced the watch."""
        self._confirm(now)
        if event.type == watch.BOOKMARK:
            version = read_bookmark(event.object)
            self.count(bookmarks=1)
            return version is not None and self._advance(version)
        is_deleted = event.type == watch.DELETED
        state = self._read(event)
        self._counts["events"] += 1
        if state is None or not self._selection.has(state.key):
            self._count_undecodable()
            logger.warning(
                "cannot decode watch event, skipped it: %s type=%s", self._selection, event.type
            )
            return False
        changes = self.store.delete(state) if is_deleted else self.store.upsert(state)
        if changes is None:
            self.count(duplicates=1)
        elif state.object is None and not is_deleted:
            self._skip_object(state)
        if not is_deleted and self.position.is_past(state.version):
            # A watch delivers versions in order, so this event or an earlier one is wrong.
            self.needs_relist = True
        self.position.record_event(state.key, state.version, deleted=is_deleted)
        is_further = self._advance(state.version)
        self._notify(changes or ())
        return is_further

    def _read(self, event: WatchEvent) -> ObjectState[T] | None:
        """Decode the object of an event; of a deletion only the metadata."""
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
                "watch missed changes that a list returned: %s count=%d", self._selection, missed
            )

    def _count_undecodable(self) -> None:
        self.count(undecodable=1)
        self.needs_relist = True

    def _skip_object(self, state: ObjectState[T]) -> None:
        self._count_undecodable()
        logger.warning(
            "cannot decode object, skipped it: %s namespace=%s name=%s version=%s",
            self._selection,
            *state.key,
            state.version.text,
        )

    def _reset(self, listing: ListResult[T], newest: ResourceVersion) -> None:
        if newest.is_after(listing.version):
            logger.warning(
                "resource versions decreased, the API server may have been restored from a backup: "
                "%s from=%s to=%s",
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
                logger.exception(
                    "change handler raised an exception: %s %s", self._selection, _describe(change)
                )


def _describe(change: ObjectChange[T]) -> str:
    match change:
        case Added(object_) | Updated(_, object_) | Removed(object_):
            namespace, name = key_of(object_)
            return f"change={type(change).__name__} namespace={namespace} name={name}"
