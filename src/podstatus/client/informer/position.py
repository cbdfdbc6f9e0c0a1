"""How far a watch is, and what it has yet to tell of what a list told already.

A list that is taken beside a running watch runs ahead of it. What the two differ in has either
just not arrived yet, or was missed. Which of the two shows when the watch has come past the
version of the list: what it has not delivered by then, it missed.
"""

from collections.abc import Iterable

from podstatus.client.informer.decode import HasMetadata, ObjectKey, T, key_of
from podstatus.client.informer.resource_version import UNKNOWN, ResourceVersion
from podstatus.client.informer.store import Added, ObjectChange, Removed, Updated


class WatchPosition:
    """The position of one watch, kept from stream to stream."""

    def __init__(self) -> None:
        self._watched = UNKNOWN
        """Up to here the watch has told everything."""
        self._listed = UNKNOWN
        self._pending: dict[ObjectKey, ResourceVersion | None] = {}
        """What the last list was ahead in: the state to be delivered, None for a deletion."""
        self.must_list = True
        """Whether there is nothing to begin a watch from."""

    @property
    def newest(self) -> ResourceVersion:
        """The newest version that was seen: no list can be older, unless versions went back."""
        return self._listed if self._listed.is_after(self._watched) else self._watched

    @property
    def resume_version(self) -> str:
        """Where the next stream begins: at the list's version, unless it is to show what it
        makes of the differences."""
        return self._watched.text if self._pending else self.newest.text

    def begin_at(self, version: ResourceVersion) -> None:
        """A list told everything, and the watch begins there."""
        self._watched = self._listed = version
        self._pending.clear()
        self.must_list = False

    def invalidate(self) -> None:
        """The watch cannot go on: it needs a list to begin at."""
        self.must_list = True

    def record_list(self, version: ResourceVersion, changes: Iterable[ObjectChange[T]]) -> None:
        """A list beside the watch made these changes."""
        self._listed = version
        for change in changes:
            match change:
                case Added(new) | Updated(_, new):
                    self._pending[key_of(new)] = _version(new)
                case Removed(last):
                    self._pending[key_of(last)] = None

    def record_event(self, key: ObjectKey, version: ResourceVersion, *, deleted: bool) -> None:
        """The watch told this about an object."""
        if key not in self._pending:
            return
        state = self._pending[key]
        if deleted if state is None else not state.is_after(version):
            del self._pending[key]

    def is_past(self, version: ResourceVersion) -> bool:
        """Whether the watch has already delivered a newer version than this one."""
        return self._watched.is_after(version)

    def advance(self, version: ResourceVersion) -> bool:
        """The watch is here; whether that is further than before.

        No version is nowhere: a stream that began there would leave deletions out.
        """
        if version.is_covered_by(self._watched) or version.text in ("", self._watched.text):
            return False
        self._watched = version
        return True

    def pop_missed(self) -> int:
        """How many changes the watch has missed for good, since the last time."""
        if not self._pending or self._listed.is_after(self._watched):
            return 0
        missed = len(self._pending)
        self._pending.clear()
        return missed


def _version(object_: HasMetadata) -> ResourceVersion:
    return ResourceVersion.parse(object_.metadata.resource_version)
