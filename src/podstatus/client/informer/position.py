"""The position of a watch, and the changes that a list has shown but the watch has not.

A list that is taken during a watch is ahead of it. A difference between the two either has not
arrived yet, or was missed. When the watch has passed the version of the list, the changes that it
has not delivered were missed.
"""

from collections.abc import Iterable

from podstatus.client.informer.decode import HasMetadata, ObjectKey, T, key_of
from podstatus.client.informer.object_store import Added, ObjectChange, Removed, Updated
from podstatus.client.informer.resource_version import UNKNOWN, ResourceVersion


class WatchPosition:
    """The position of one watch, across its streams."""

    def __init__(self) -> None:
        self._watched = UNKNOWN
        """The watch has delivered everything up to this version."""
        self._listed = UNKNOWN
        self._pending: dict[ObjectKey, ResourceVersion | None] = {}
        """Changes that the last list was ahead with: the version to come, None for a deletion."""
        self.must_list = True
        """Whether a list is needed before the next watch."""

    @property
    def newest(self) -> ResourceVersion:
        """Return the newest version seen; a list is only older if versions were reset."""
        return self._listed if self._listed.is_after(self._watched) else self._watched

    @property
    def resume_version(self) -> str:
        """Return the version at which the next stream starts: the newest one, or while changes
        are pending the watched one, so that the stream can still deliver them."""
        return self._watched.text if self._pending else self.newest.text

    def begin_at(self, version: ResourceVersion) -> None:
        """Start the watch at the version of a list that has been applied."""
        self._watched = self._listed = version
        self._pending.clear()
        self.must_list = False

    def invalidate(self) -> None:
        """Require a list before the next watch."""
        self.must_list = True

    def record_list(self, version: ResourceVersion, changes: Iterable[ObjectChange[T]]) -> None:
        """Record the changes that a list during the watch has shown."""
        self._listed = version
        for change in changes:
            match change:
                case Added(new) | Updated(_, new):
                    self._pending[key_of(new)] = _version(new)
                case Removed(last):
                    self._pending[key_of(last)] = None

    def record_event(self, key: ObjectKey, version: ResourceVersion, *, deleted: bool) -> None:
        """Record that the watch delivered this version or deletion of an object."""
        if key not in self._pending:
            return
        state = self._pending[key]
        if deleted if state is None else not state.is_after(version):
            del self._pending[key]

    def is_past(self, version: ResourceVersion) -> bool:
        """Whether the watch has already delivered a newer version than this one."""
        return self._watched.is_after(version)

    def advance(self, version: ResourceVersion) -> bool:
        """Move the watch to a version; return whether it is further than before.

        An empty version is ignored: a stream that starts there would miss deletions.
        """
        if version.is_covered_by(self._watched) or version.text in ("", self._watched.text):
            return False
        self._watched = version
        return True

    def pop_missed(self) -> int:
        """Return the number of changes that the watch has missed since the last call."""
        if not self._pending or self._listed.is_after(self._watched):
            return 0
        missed = len(self._pending)
        self._pending.clear()
        return missed


def _version(object_: HasMetadata) -> ResourceVersion:
    return ResourceVersion.parse(object_.metadata.resource_version)
