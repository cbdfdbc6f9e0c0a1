"""When to look at which pod again."""

import heapq

from podstatus.kube.objects.pod import PodUID

_MAX_STALE_ENTRIES = 64
"""Moments that were put off stay in the heap; so many more than are needed may."""


class PodSchedule:
    """At most one moment for each pod, the earliest first."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, PodUID]] = []
        self._due: dict[PodUID, int] = {}

    def reschedule(self, uid: PodUID, at: int | None) -> None:
        """Look at this pod at that time, and not at the one said before; None: never."""
        if self._due.get(uid) == at:
            return
        if at is None:
            self._due.pop(uid, None)
            return
        self._due[uid] = at
        heapq.heappush(self._heap, (at, uid))
        if len(self._heap) > _MAX_STALE_ENTRIES + 2 * len(self._due):
            self._heap = [(due, pod) for pod, due in self._due.items()]
            heapq.heapify(self._heap)

    def pop_due(self, now: int) -> list[PodUID]:
        """The pods whose moment has come; they have none any more."""
        due = []
        while (at := self.next_due()) is not None and at <= now:
            _, uid = heapq.heappop(self._heap)
            del self._due[uid]
            due.append(uid)
        return due

    def next_due(self) -> int | None:
        """The earliest moment of all."""
        while self._heap:
            at, uid = self._heap[0]
            if self._due.get(uid) == at:
                return at
            heapq.heappop(self._heap)
        return None
