"""What a reflector knows and tells: state that lists and events change in one step."""

import logging
import math
from collections.abc import Callable
from typing import Generic

from podstatus.client.informer.decode import (
    Sighting,
    T,
    key_of,
    read_bookmark,
    read_metadata,
    read_object,
)
from podstatus.client.informer.listwatch import Selection
from podstatus.client.informer.position import Progress
from podstatus.client.informer.reflector_counts import ReflectorCounts
from podstatus.client.informer.resource_version import ResourceVersion
from podstatus.client.informer.store import (
    Added,
    Change,
    Changes,
    Listing,
    Removed,
    Replica,
    Updated,
)
from podstatus.client.informer.transform import Digest
from podstatus.client.rest import watch
from podstatus.client.rest.watch import WatchEvent

logger = logging.getLogger(__name__)

_SECOND = 1_000_000_000


class Reflection(Generic[T]):
    """A copy of a set of objects, how far it goes, and a handler that is told of changes.

    Nothing here waits.
    """

    def __init__(
        self, what: Selection, kind: type[T] | Digest[T], handler: Callable[[Change[T]], None]
    ) -> None:
        self._what = what
        self._kind = kind
        self._handler = handler
        self._confirmed: int | None = None
        self.replica = Replica[T]()
        self.progress = Progress()
        self.is_doubtful = False
        """Whether something since the last list, or in it, could not be decoded or came out of
        order, so that the copy may be wrong until the next list."""
        self._counts = dict.fromkeys(ReflectorCounts.__struct_fields__, 0)

    def staleness(self, now: int) -> float:
        """Seconds since something confirmed the copy; infinite before the first list."""
        return math.inf if self._confirmed is None else max(0, now - self._confirmed) / _SECOND

    @property
    def counts(self) -> ReflectorCounts:
        """What was counted until now."""
        return ReflectorCounts(**self._counts)

    def count(self, **more: int) -> None:
        """Add to some of the counts."""
        for name, number in more.items():
            self._counts[name] += number

    def take_list(
        self, listing: Listing[T], asked: int, newest: ResourceVersion, *, beside: bool
    ) -> bool:
        """Take over a list that was asked for at a time, when `newest` was the newest version.

        Taken `beside` a watch, it shows what the watch misses. Returns whether the watch has to
        begin anew from the list, as the versions of the two cannot be compared.
        """
        self._confirm(asked)
        self.count(lists=1, undecodable=listing.undecodable)
        self.is_doubtful = listing.undecodable > 0
        if listing.undecodable:
            logger.warning(
                "list has objects that cannot be decoded: %s count=%d",
                self._what,
                listing.undecodable,
            )
        if listing.version.number is None or newest.is_after(listing.version):
            self._begin_over(listing, newest)
            return True
        changes = self.replica.take(listing)
        if beside and not self.progress.must_list:
            self.progress.listed(listing.version, changes)
            self._count_missed()
        else:
            self.progress.begin_at(listing.version)
        self._tell(changes)
        return False

    def take_event(self, event: WatchEvent, now: int) -> bool:
        """Take over an event; returns whether the watch has come further by it."""
        self._confirm(now)
        if event.type == watch.BOOKMARK:
            version = read_bookmark(event.object)
            self.count(bookmarks=1)
            return version is not None and self._reach(version)
        is_deleted = event.type == watch.DELETED
        seen = self._read(event)
        self._counts["events"] += 1
        if seen is None or not self._what.has(seen.key):
            self._count_undecodable()
            logger.warning("event cannot be read, skipped: %s type=%s", self._what, event.type)
            return False
        changes = self.replica.see_deleted(seen) if is_deleted else self.replica.see(seen)
        if changes is None:
            self.count(duplicates=1)
        elif seen.object is None and not is_deleted:
            self._skip_object(seen)
        if not is_deleted and self.progress.is_past(seen.version):
            # A watch delivers versions in order, so this one or an earlier one is wrong.
            self.is_doubtful = True
        self.progress.delivered(seen.key, seen.version, deleted=is_deleted)
        is_further = self._reach(seen.version)
        self._tell(changes or ())
        return is_further

    def _read(self, event: WatchEvent) -> Sighting[T] | None:
        """What an event tells; of a deletion, that it was one is enough."""
        match event.type:
            case watch.DELETED:
                return read_metadata(event.object)
            case watch.ADDED | watch.MODIFIED:
                return read_object(event.object, self._kind)
        return None

    def _reach(self, version: ResourceVersion) -> bool:
        is_further = self.progress.reached(version)
        self._count_missed()
        return is_further

    def _count_missed(self) -> None:
        missed = self.progress.take_missed()
        if missed:
            self.count(missed=missed)
            logger.warning(
                "watch missed changes, a list has shown them: %s count=%d", self._what, missed
            )

    def _count_undecodable(self) -> None:
        self.count(undecodable=1)
        self.is_doubtful = True

    def _skip_object(self, seen: Sighting[T]) -> None:
        self._count_undecodable()
        logger.warning(
            "object cannot be decoded, skipped: %s namespace=%s name=%s version=%s",
            self._what,
            *seen.key,
            seen.version.text,
        )

    def _begin_over(self, listing: Listing[T], newest: ResourceVersion) -> None:
        if newest.is_after(listing.version):
            logger.warning(
                "resource versions went back, as if the server was restored: %s from=%s to=%s",
                self._what,
                newest.text,
                listing.version.text,
            )
        changes = self.replica.replace(listing)
        self.progress.begin_at(listing.version)
        self._tell(changes)

    def _confirm(self, now: int) -> None:
        self._confirmed = now if self._confirmed is None else max(now, self._confirmed)

    def _tell(self, changes: Changes[T]) -> None:
        for change in changes:
            try:
                self._handler(change)
            except Exception:
                self.count(handler_failures=1)
                logger.exception("handler failed: %s %s", self._what, _describe(change))


def _describe(change: Change[T]) -> str:
    match change:
        case Added(object_) | Updated(_, object_) | Removed(object_):
            namespace, name = key_of(object_)
            return f"change={type(change).__name__} namespace={namespace} name={name}"
