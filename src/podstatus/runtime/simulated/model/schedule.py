"""Priority queue of the times at which pods change next."""

import heapq

from podstatus.kube.objects.pod import PodUID

_MAX_STALE_ENTRIES = 64
"""Superseded entries stay in the heap; it is compacted when more than this many are superfluous."""


class PodSchedule:
    """At most one due time per pod, earliest first."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, PodUID]] = []
        self._due: dict[PodUID, int] = {}

    def reschedule(self, uid: PodUID, at: int | None) -> None:
        """Set the pod's due time, replacing the previous one; None removes it."""
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
        """Remove and return the pods whose due time has come."""
        due = []
        while (at := self.next_due()) is not None and at <= now:
            _, uid = heapq.heappop(self._heap)
            del self._due[uid]
            due.append(uid)
        return due

    def next_due(self) -> int | None:
        """Return the earliest due time, or None."""
        while self._heap:
            at, uid = self._heap[0]
            if self._due.get(uid) == at:
                return at
            heapq.heappop(self._heap)
        return None
