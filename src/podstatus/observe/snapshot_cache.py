"""The current summaries of all pods, with one writer and many followers.

Each change has a revision. A follower asks for all changes after a revision, and gets each pod once
in its current state; removed pods are remembered for a while. A follower whose revision is too old,
or from another instance of the cache, gets a reset with all pods.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Iterable, Mapping
from itertools import takewhile
from types import MappingProxyType
from typing import TypeVar

import msgspec

from podstatus.kube.objects.pod import PodUID
from podstatus.observe.summary.pod import PodSummary

T = TypeVar("T")

MAX_DELETED = 10_000
"""Removed pods that are remembered."""


class PodTombstone(msgspec.Struct, frozen=True, gc=False):
    """A pod that has been removed."""

    uid: PodUID
    namespace: str
    name: str


class ChangedPods(msgspec.Struct, frozen=True, kw_only=True):
    """Changes after a revision, by UID, for followers that read each pod when its turn comes.

    It keeps no pods in memory, so a follower may process it slowly.
    """

    revision: int
    """The revision to continue from."""
    reset: bool = False
    """Whether this is the full state, not the changes: the revision was too old or unknown."""
    pods: tuple[PodUID, ...] = ()
    """In the order of their latest change."""
    deleted: tuple[tuple[int, PodTombstone], ...] = ()
    """Removed pods with their revisions, in that order."""


class SnapshotCache:
    """The pods. Written and followed in one event loop; `pods` may be called from any thread."""

    def __init__(self, *, max_deleted: int = MAX_DELETED) -> None:
        self._pods: dict[PodUID, tuple[int, PodSummary]] = {}
        """In the order of their latest change."""
        self._deleted: deque[tuple[int, PodTombstone]] = deque()
        self._max_deleted = max_deleted
        self._revision = 0
        self._compacted_revision = 0
        """Revision of the latest removal that is no longer remembered."""
        self.epoch = secrets.token_hex(4)
        """Identifies this instance: revisions of another one are not comparable."""
        self._change_event = asyncio.Event()
        self._pods_view: Mapping[PodUID, PodSummary] | None = None

    @property
    def revision(self) -> int:
        return self._revision

    def pods(self) -> Mapping[PodUID, PodSummary]:
        if self._pods_view is None:
            self._pods_view = MappingProxyType({uid: pod for uid, (_, pod) in self._pods.items()})
        return self._pods_view

    def find(self, uid: PodUID) -> tuple[int, PodSummary] | None:
        """Return a pod and the revision of its latest change."""
        return self._pods.get(uid)

    def put(self, pod: PodSummary) -> bool:
        """Set the current state of a pod; return whether it changed."""
        current = self._pods.get(pod.uid)
        if current is not None and current[1] == pod:
            return False
        self._pods.pop(pod.uid, None)
        self._revision += 1
        self._pods[pod.uid] = self._revision, pod
        self._notify()
        return True

    def remove(self, uid: PodUID) -> None:
        removed = self._pods.pop(uid, None)
        if removed is None:
            return
        pod = removed[1]
        self._revision += 1
        self._deleted.append((self._revision, PodTombstone(uid, pod.namespace, pod.name)))
        if len(self._deleted) > self._max_deleted:
            self._compacted_revision, _ = self._deleted.popleft()
        self._notify()

    def changed_since(self, after: int | None) -> ChangedPods:
        """Return which pods changed after a revision; None: the full state."""
        if after is None or after < self._compacted_revision or after > self._revision:
            return ChangedPods(revision=self._revision, reset=True, pods=tuple(self._pods))
        pods = takewhile(lambda uid: self._pods[uid][0] > after, reversed(self._pods))
        deleted = takewhile(lambda numbered: numbered[0] > after, reversed(self._deleted))
        return ChangedPods(
            revision=self._revision, pods=_oldest_first(pods), deleted=_oldest_first(deleted)
        )

    async def wait(self, after: int) -> None:
        """Return once there is a change after this revision."""
        while self._revision <= after:
            await self._change_event.wait()

    def _notify(self) -> None:
        self._pods_view = None
        changed, self._change_event = self._change_event, asyncio.Event()
        changed.set()


def _oldest_first(newest_first: Iterable[T]) -> tuple[T, ...]:
    return tuple(reversed(tuple(newest_first)))
