"""The statuses a node stands by, each with a version that grows by one while it lives."""

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import structs

from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.kube.scalars.time import Time
from podstatus.status.ports import OutboxEntry

MAX_UNSENT = 16
"""How many unsent updates of a pod are told apart. The oldest is always among them; more
matter only if so many come during one send. So an outage does not fill the memory."""

_SECOND = 1_000_000_000


class UnsentUpdate(msgspec.Struct, frozen=True):
    """When a version was cached."""

    version: int
    at: Time


class VersionedStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A pod's status as it is cached."""

    version: int
    namespace: str
    name: str
    finished: bool
    """The pod's life is over and nothing more will be reported."""
    status: PodStatus
    unsent: tuple[UnsentUpdate, ...] = ()
    """The updates that the API server has not acknowledged: the oldest first, this one last."""

    def unsent_seconds(self, now: Time) -> float | None:
        """How long the oldest of them has been waiting; None if there are none.

        Never negative: it is wall-clock time, and such a clock can be set back.
        """
        return max(now - self.unsent[0].at, 0) / _SECOND if self.unsent else None


class StatusCache:
    """Statuses by pod UID. Not locked: its owner is."""

    def __init__(self) -> None:
        self._entries: dict[PodUID, VersionedStatus] = {}
        self._changed: dict[PodUID, None] = {}
        self._forced: set[PodUID] = set()
        self._restored: dict[PodUID, PodStatus] = {}
        """Of pods without an entry that live on, what an earlier life could not deliver."""

    def get(self, uid: PodUID) -> VersionedStatus | None:
        """The entry of this pod."""
        return self._entries.get(uid)

    def put(self, pod: Pod, status: PodStatus, *, finished: bool, now: Time) -> VersionedStatus:
        """Cache a new status of the pod under the next version."""
        uid = pod.uid
        old = self._entries.get(uid)
        version = 1 if old is None else old.version + 1
        waiting = () if old is None else old.unsent
        if len(waiting) == MAX_UNSENT:
            waiting = waiting[:1] + waiting[2:]
        entry = VersionedStatus(
            version=version,
            namespace=pod.namespace,
            name=pod.name,
            finished=finished,
            status=status,
            unsent=(*waiting, UnsentUpdate(version, now)),
        )
        self._entries[uid] = entry
        self._changed[uid] = None
        self._forced.discard(uid)
        self._restored.pop(uid, None)
        return entry

    def restored(self, uid: PodUID) -> PodStatus | None:
        """What an earlier life said of a pod that lives on, and could not deliver."""
        return self._restored.get(uid)

    def seed(self, last: OutboxEntry, now: Time) -> None:
        """Take over the status of an earlier life, unless there is one already.

        One that was not the last is remembered only: it is old by now.
        """
        if last.uid in self._entries:
            return
        if not last.finished:
            self._restored[last.uid] = last.status
            return
        self._entries[last.uid] = VersionedStatus(
            version=1,
            namespace=last.namespace,
            name=last.name,
            finished=True,
            status=last.status,
            unsent=(UnsentUpdate(1, now),),
        )
        self._changed[last.uid] = None

    def pop_changed(self) -> tuple[PodUID, ...]:
        """The pods that have a new version since the last call of this, in that order."""
        changed, self._changed = tuple(self._changed), {}
        return changed

    def force_next_update(self, uid: PodUID) -> None:
        """Have the next status of a pod count as new, whatever it says."""
        if uid in self._entries:
            self._forced.add(uid)

    def is_update_forced(self, uid: PodUID) -> bool:
        """Whether it does."""
        return uid in self._forced

    def restamp(self, uid: PodUID, entry: VersionedStatus, status: PodStatus) -> None:
        """Put a status that differs in times only into the entry, if it is still this one."""
        if self._entries.get(uid) is entry:
            self._entries[uid] = structs.replace(entry, status=status)

    def acknowledge(self, uid: PodUID, entry: VersionedStatus) -> None:
        """Say that the API server has what this entry says; what came after it still waits."""
        cached = self._entries.get(uid)
        if cached is not None and entry.unsent:
            waiting = [update for update in cached.unsent if update not in entry.unsent]
            self._entries[uid] = structs.replace(cached, unsent=tuple(waiting))

    def remove(self, uid: PodUID) -> None:
        """Forget the pod."""
        self._entries.pop(uid, None)
        self._changed.pop(uid, None)
        self._forced.discard(uid)
        self._restored.pop(uid, None)

    def __iter__(self) -> Iterator[PodUID]:
        """The UIDs of all pods of which anything is known."""
        yield from self._entries
        yield from self._restored

    def entries(self) -> Mapping[PodUID, VersionedStatus]:
        """All entries at this moment."""
        return dict(self._entries)
