"""Which pod goes next: the one that can wait least.

Each lane has its patience, and who has waited for longer than it goes first, whatever the lane:
so deletions overtake a backlog, and the backlog is never left behind for good.
"""

import heapq
import itertools
from enum import Enum

from podstatus.kube.objects.pod import PodUID


class Lane(Enum):
    """How long a pod can wait, in seconds, before it stands in line with everybody else."""

    URGENT = 0.0
    """It is to be deleted, or has become ready for the first time: somebody waits for that."""
    ORDINARY = 30.0
    RECONCILE = 60.0
    """Nobody has reported anything: the API server shows something else than we think, or it is a
    further try after a failure."""


class Lanes:
    """Pods that wait, each once."""

    def __init__(self) -> None:
        self._due: dict[PodUID, float] = {}
        self._heap: list[tuple[float, int, PodUID]] = []
        self._order = itertools.count()

    def __len__(self) -> int:
        return len(self._due)

    def put(self, uid: PodUID, lane: Lane, now: float) -> None:
        """Let a pod wait; one that waits already goes ahead, if this lane is the faster."""
        due = now + lane.value
        known = self._due.get(uid)
        if known is not None and known <= due:
            return
        self._due[uid] = due
        heapq.heappush(self._heap, (due, next(self._order), uid))

    def pop(self) -> PodUID | None:
        """The pod that goes next, which waits no more; None if nobody does."""
        while self._heap:
            due, _, uid = heapq.heappop(self._heap)
            if self._due.get(uid) == due:
                del self._due[uid]
                return uid
        return None

    def discard(self, uid: PodUID) -> None:
        """Let a pod wait no more."""
        self._due.pop(uid, None)
