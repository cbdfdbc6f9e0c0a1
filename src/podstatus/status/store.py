"""The cache of pod statuses. Each update increments the pod's version by one."""

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import structs

from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.kube.scalars.time import Time
from podstatus.status.ports import OutboxEntry

MAX_UNSENT = 16
"""Unsent updates that are recorded per pod, always including the oldest. Further ones only matter
if they arrive during a single send. The limit bounds memory during an outage."""

_SECOND = 1_000_000_000


class UnsentUpdate(msgspec.Struct, frozen=True):
    """The time at which a version was cached."""

    version: int
    at: Time


class VersionedStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A cached pod status with its version."""

    version: int
    namespace: str
    name: str
    finished: bool
    """This is the pod's final status."""
    status: PodStatus
    unsent: tuple[UnsentUpdate, ...] = ()
    """The updates that the API server has not acknowledged, oldest first, including this one."""

    def unsent_seconds(self, now: Time) -> float | None:
        """Return the age of the oldest unsent update in seconds; None if all are acknowledged.

        Never negative, even if the wall clock was set back.
        """
        return max(now - self.unsent[0].at, 0) / _SECOND if self.unsent else None


class StatusCache:
    """Statuses by pod UID. Not thread-safe: the owner holds the lock."""

    def __init__(self) -> None:
        self._entries: dict[PodUID, VersionedStatus] = {}
        self._changed: dict[PodUID, None] = {}
        self._forced: set[PodUID] = set()
        self._restored: dict[PodUID, PodStatus] = {}
        """Undelivered statuses from before a restart, of live pods without an entry."""

    def get(self, uid: PodUID) -> VersionedStatus | None:
        """Return the pod's entry, or None."""
        return self._entries.get(uid)

    def put(self, pod: Pod, status: PodStatus, *, finished: bool, now: Time) -> VersionedStatus:
        """Cache a new status of the pod with the next version."""
        uid = pod.uid
        old = self._entries.get(uid)
        version = 1 if old is None else old.version + 1
        unsent = () if old is None else old.unsent
        if len(unsent) == MAX_UNSENT:
            unsent = unsent[:1] + unsent[2:]
        entry = VersionedStatus(
            version=version,
            namespace=pod.namespace,
            name=pod.name,
            finished=finished,
            status=status,
            unsent=(*unsent, UnsentUpdate(version, now)),
        )
        self._entries[uid] = entry
        self._changed[uid] = None
        self._forced.discard(uid)
        self._restored.pop(uid, None)
        return entry

    def restored(self, uid: PodUID) -> PodStatus | None:
        """Return the undelivered status from before a restart of a live pod, or None."""
        return self._restored.get(uid)

    def seed(self, undelivered: OutboxEntry, now: Time) -> None:
        """Restore an undelivered status from before a restart, unless the pod has an entry.

        A final status becomes an entry. Another one is outdated by now and only available from
        `restored`.
        """
        if undelivered.uid in self._entries:
            return
        if not undelivered.finished:
            self._restored[undelivered.uid] = undelivered.status
            return
        self._entries[undelivered.uid] = VersionedStatus(
            version=1,
            namespace=undelivered.namespace,
            name=undelivered.name,
            finished=True,
            status=undelivered.status,
            unsent=(UnsentUpdate(1, now),),
        )
        self._changed[undelivered.uid] = None

    def pop_changed(self) -> tuple[PodUID, ...]:
        """Return the pods with a new version since the last call, in the order of the updates."""
        changed, self._changed = tuple(self._changed), {}
        return changed

    def force_next_update(self, uid: PodUID) -> None:
        """Treat the pod's next status as changed, even if it is equal."""
        if uid in self._entries:
            self._forced.add(uid)

    def is_update_forced(self, uid: PodUID) -> bool:
        """Whether the pod's next status counts as changed."""
        return uid in self._forced

    def restamp(self, uid: PodUID, entry: VersionedStatus, status: PodStatus) -> None:
        """Replace the entry's status by one that differs in times only, if `entry` is current."""
        if self._entries.get(uid) is entry:
            self._entries[uid] = structs.replace(entry, status=status)

    def acknowledge(self, uid: PodUID, entry: VersionedStatus) -> None:
        """Mark the entry's updates as acknowledged by the API server; newer ones stay unsent."""
        cached = self._entries.get(uid)
        if cached is not None and entry.unsent:
            unsent = [update for update in cached.unsent if update not in entry.unsent]
            self._entries[uid] = structs.replace(cached, unsent=tuple(unsent))

    def remove(self, uid: PodUID) -> None:
        """Remove all state of the pod."""
        self._entries.pop(uid, None)
        self._changed.pop(uid, None)
        self._forced.discard(uid)
        self._restored.pop(uid, None)

    def __iter__(self) -> Iterator[PodUID]:
        """Iterate over the UIDs of all cached and restored pods."""
        yield from self._entries
        yield from self._restored

    def entries(self) -> Mapping[PodUID, VersionedStatus]:
        """Return a snapshot of all entries."""
        return dict(self._entries)
