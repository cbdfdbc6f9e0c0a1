"""What is known now of all pods: put up by one, read and followed by many.

Each change has a number. Who follows asks for all that changed after a number, and gets each pod
once, as it is now; pods that are gone are remembered for a while. Who was away for too long, or
comes from another life of the board, is told to begin anew.
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
"""Pods that are gone and remembered as such."""


class PodTombstone(msgspec.Struct, frozen=True, gc=False):
    """A pod that is not there any more."""

    uid: PodUID
    namespace: str
    name: str


class ChangedSnapshots(msgspec.Struct, frozen=True, kw_only=True):
    """What changed after a number."""

    revision: int
    """Ask for what comes after this one next."""
    reset: bool = False
    """It is all there is, not what changed: the number was too old, or of another board."""
    pods: tuple[PodSummary, ...] = ()
    deleted: tuple[PodTombstone, ...] = ()


class ChangedPods(msgspec.Struct, frozen=True, kw_only=True):
    """Which pods changed after a number, for those who look at each when its turn comes.

    It keeps no pods alive, so that somebody may take long over it.
    """

    revision: int
    """Ask for what comes after this one next."""
    reset: bool = False
    """As in `ChangedSnapshots`."""
    pods: tuple[PodUID, ...] = ()
    """In the order of their latest change."""
    deleted: tuple[tuple[int, PodTombstone], ...] = ()
    """With their numbers, in that order."""


class SnapshotCache:
    """The pods. Written and followed in one event loop; `pods` may be read from anywhere."""

    def __init__(self, *, max_deleted: int = MAX_DELETED) -> None:
        self._pods: dict[PodUID, tuple[int, PodSummary]] = {}
        """In the order of their latest change."""
        self._deleted: deque[tuple[int, PodTombstone]] = deque()
        self._max_deleted = max_deleted
        self._revision = 0
        self._compacted_revision = 0
        """The number of the latest removal that is not remembered."""
        self._epoch = secrets.token_hex(4)
        self._change_event = asyncio.Event()
        self._pods_view: Mapping[PodUID, PodSummary] | None = None

    @property
    def epoch(self) -> str:
        """What tells this board's numbers from those of another."""
        return self._epoch

    @property
    def revision(self) -> int:
        """Of the latest change."""
        return self._revision

    def pods(self) -> Mapping[PodUID, PodSummary]:
        """All pods at this moment."""
        if self._pods_view is None:
            self._pods_view = MappingProxyType({uid: pod for uid, (_, pod) in self._pods.items()})
        return self._pods_view

    def find(self, uid: PodUID) -> tuple[int, PodSummary] | None:
        """A pod, and the number of its latest change."""
        return self._pods.get(uid)

    def put(self, pod: PodSummary) -> bool:
        """The pod is like this now; whether that is news."""
        known = self._pods.get(pod.uid)
        if known is not None and known[1] == pod:
            return False
        self._pods.pop(pod.uid, None)
        self._revision += 1
        self._pods[pod.uid] = self._revision, pod
        self._notify()
        return True

    def remove(self, uid: PodUID) -> None:
        """The pod is not there any more."""
        known = self._pods.pop(uid, None)
        if known is None:
            return
        pod = known[1]
        self._revision += 1
        self._deleted.append((self._revision, PodTombstone(uid, pod.namespace, pod.name)))
        if len(self._deleted) > self._max_deleted:
            self._compacted_revision, _ = self._deleted.popleft()
        self._notify()

    def changes_since(self, after: int | None) -> ChangedSnapshots:
        """What changed after this number; None: all there is."""
        changed = self.changed_since(after)
        pods = tuple(self._pods[uid][1] for uid in changed.pods)
        gone = tuple(gone for _, gone in changed.deleted)
        return ChangedSnapshots(
            revision=changed.revision, reset=changed.reset, pods=pods, deleted=gone
        )

    def changed_since(self, after: int | None) -> ChangedPods:
        """Which pods changed after this number; None: all there are."""
        if after is None or after < self._compacted_revision or after > self._revision:
            return ChangedPods(revision=self._revision, reset=True, pods=tuple(self._pods))
        pods = takewhile(lambda uid: self._pods[uid][0] > after, reversed(self._pods))
        gone = takewhile(lambda numbered: numbered[0] > after, reversed(self._deleted))
        return ChangedPods(
            revision=self._revision, pods=_oldest_first(pods), deleted=_oldest_first(gone)
        )

    async def wait(self, after: int) -> None:
        """Come back when something has changed after this number."""
        while self._revision <= after:
            await self._change_event.wait()

    def _notify(self) -> None:
        self._pods_view = None
        changed, self._change_event = self._change_event, asyncio.Event()
        changed.set()


def _oldest_first(newest_first: Iterable[T]) -> tuple[T, ...]:
    return tuple(reversed(tuple(newest_first)))
