"""A handler that checks that the reported changes are consistent."""

from typing import Generic

from podstatus.client.informer.decode import HasMetadata, ObjectKey, T, key_of
from podstatus.client.informer.object_store import Added, ObjectChange, Removed, Updated


class Story(Generic[T]):
    """A handler; the changes add up to `objects`.

    Versions grow, unless the server is replaced or has versions that are not numbers.
    """

    def __init__(self, *, versions_grow: bool = True) -> None:
        self._versions_grow = versions_grow
        self.objects: dict[ObjectKey, T] = {}
        self.changes: list[ObjectChange[T]] = []
        self._versions: dict[ObjectKey, int] = {}
        self._gone: set[str] = set()

    def __call__(self, change: ObjectChange[T]) -> None:
        self.changes.append(change)
        match change:
            case Added(new):
                assert key_of(new) not in self.objects, "added twice"
                assert new.metadata.uid not in self._gone, "back from the dead"
                self._put(new)
            case Updated(old, new):
                assert self.objects[key_of(new)] is old, "the old object is not the reported one"
                assert old.metadata.uid == new.metadata.uid, "another one is no update"
                self._put(new)
            case Removed(last):
                assert self.objects.pop(key_of(last)) is last, (
                    "removed an object that was not reported"
                )
                self._gone.add(last.metadata.uid)

    def _put(self, new: T) -> None:
        key = key_of(new)
        if self._versions_grow:
            version = version_of(new)
            assert self._versions.get(key, 0) < version, "an older state after a newer one"
            self._versions[key] = version
        self.objects[key] = new


def version_of(object_: HasMetadata) -> int:
    return int(object_.metadata.resource_version)
