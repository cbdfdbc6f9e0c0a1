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

MOST_GONE = 10_000
"""Pods that are gone and remembered as such."""


class Gone(msgspec.Struct, frozen=True, gc=False):
    """A pod that is not there any more."""

    uid: PodUID
    namespace: str
    name: str


class News(msgspec.Struct, frozen=True, kw_only=True):
    """What changed after a number."""

    number: int
    """Ask for what comes after this one next."""
    anew: bool = False
    """It is all there is, not what changed: the number was too old, or of another board."""
    pods: tuple[PodSummary, ...] = ()
    gone: tuple[Gone, ...] = ()


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """Which pods changed after a number, for those who look at each when its turn comes.

    It keeps no pods alive, so that somebody may take long over it.
    """

    number: int
    """Ask for what comes after this one next."""
    anew: bool = False
    """As in `News`."""
    pods: tuple[PodUID, ...] = ()
    """In the order of their latest change."""
    gone: tuple[tuple[int, Gone], ...] = ()
    """With their numbers, in that order."""


class Board:
    """The pods. Written and followed in one event loop; `pods` may be read from anywhere."""

    def __init__(self, *, most_gone: int = MOST_GONE) -> None:
        self._pods: dict[PodUID, tuple[int, PodSummary]] = {}
        """In the order of their latest change."""
        self._gone: deque[tuple[int, Gone]] = deque()
        self._most_gone = most_gone
        self._number = 0
        self._forgotten = 0
        """The number of the latest removal that is not remembered."""
        self._life = secrets.token_hex(4)
        self._changed = asyncio.Event()
        self._view: Mapping[PodUID, PodSummary] | None = None

    @property
    def life(self) -> str:
        """What tells this board's numbers from those of another."""
        return self._life

    @property
    def number(self) -> int:
        """Of the latest change."""
        return self._number

    def pods(self) -> Mapping[PodUID, PodSummary]:
        """All pods at this moment."""
        if self._view is None:
            self._view = MappingProxyType({uid: pod for uid, (_, pod) in self._pods.items()})
        return self._view

    def find(self, uid: PodUID) -> tuple[int, PodSummary] | None:
        """A pod, and the number of its latest change."""
        return self._pods.get(uid)

    def put(self, pod: PodSummary) -> bool:
        """The pod is like this now; whether that is news."""
        known = self._pods.get(pod.uid)
        if known is not None and known[1] == pod:
            return False
        self._pods.pop(pod.uid, None)
        self._number += 1
        self._pods[pod.uid] = self._number, pod
        self._tell()
        return True

    def remove(self, uid: PodUID) -> None:
        """The pod is not there any more."""
        known = self._pods.pop(uid, None)
        if known is None:
            return
        pod = known[1]
        self._number += 1
        self._gone.append((self._number, Gone(uid, pod.namespace, pod.name)))
        if len(self._gone) > self._most_gone:
            self._forgotten, _ = self._gone.popleft()
        self._tell()

    def news(self, after: int | None) -> News:
        """What changed after this number; None: all there is."""
        changed = self.changed(after)
        pods = tuple(self._pods[uid][1] for uid in changed.pods)
        gone = tuple(gone for _, gone in changed.gone)
        return News(number=changed.number, anew=changed.anew, pods=pods, gone=gone)

    def changed(self, after: int | None) -> Changed:
        """Which pods changed after this number; None: all there are."""
        if after is None or after < self._forgotten or after > self._number:
            return Changed(number=self._number, anew=True, pods=tuple(self._pods))
        pods = takewhile(lambda uid: self._pods[uid][0] > after, reversed(self._pods))
        gone = takewhile(lambda numbered: numbered[0] > after, reversed(self._gone))
        return Changed(number=self._number, pods=_turned(pods), gone=_turned(gone))

    async def wait(self, after: int) -> None:
        """Come back when something has changed after this number."""
        while self._number <= after:
            await self._changed.wait()

    def _tell(self) -> None:
        self._view = None
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


def _turned(newest_first: Iterable[T]) -> tuple[T, ...]:
    return tuple(reversed(tuple(newest_first)))
