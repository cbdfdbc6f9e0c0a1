"""The statuses a node stands by, each with a version that grows by one while it lives."""

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import structs

from podstatus.kube.pod import Pod, PodUID
from podstatus.kube.pod_status import PodStatus


class VersionedStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A pod's status as it is cached."""

    version: int
    namespace: str
    name: str
    finished: bool
    """The pod's life is over and nothing more will be reported."""
    status: PodStatus


class StatusCache:
    """Statuses by pod UID. Not locked: its owner is."""

    def __init__(self) -> None:
        self._entries: dict[PodUID, VersionedStatus] = {}

    def get(self, uid: PodUID) -> VersionedStatus | None:
        """The entry of this pod."""
        return self._entries.get(uid)

    def put(self, pod: Pod, status: PodStatus, *, finished: bool) -> VersionedStatus:
        """Cache a new status of the pod under the next version."""
        old = self._entries.get(pod.uid)
        entry = VersionedStatus(
            version=1 if old is None else old.version + 1,
            namespace=pod.namespace,
            name=pod.name,
            finished=finished,
            status=status,
        )
        self._entries[pod.uid] = entry
        return entry

    def restamp(self, uid: PodUID, entry: VersionedStatus, status: PodStatus) -> None:
        """Put a status that differs in times only into the entry, if it is still this one."""
        if self._entries.get(uid) is entry:
            self._entries[uid] = structs.replace(entry, status=status)

    def remove(self, uid: PodUID) -> None:
        """Forget the pod."""
        self._entries.pop(uid, None)

    def __iter__(self) -> Iterator[PodUID]:
        """The UIDs of all cached pods."""
        return iter(self._entries)

    def entries(self) -> Mapping[PodUID, VersionedStatus]:
        """All entries at this moment."""
        return dict(self._entries)
