"""A heap of timers with one deadline per key."""

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_COMPACT_SLACK = 64


class TimerHeap(Generic[K]):
    """One deadline per key. Cancelled entries stay in the heap until it is compacted."""

    def __init__(self) -> None:
        self._times: dict[K, int] = {}
        self._heap: list[tuple[int, int, K]] = []
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._times)

    def __contains__(self, key: K) -> bool:
        return key in self._times

    def pending_keys(self) -> list[K]:
        return list(self._times)

    def set(self, key: K, at: int | None) -> None:
        """Set the deadline of a key, replacing an earlier one; None removes it."""
        if at is None:
            self.cancel(key)
            return
        if self._times.get(key) == at:
            return
        self._times[key] = at
        self._sequence += 1
        heapq.heappush(self._heap, (at, self._sequence, key))
        if len(self._heap) > 2 * len(self._times) + _COMPACT_SLACK:
            self._compact()

    def cancel(self, key: K) -> None:
        self._times.pop(key, None)

    def next_due(self) -> int | None:
        """Return the earliest deadline; None if there is none."""
        while self._heap and self._times.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now: int) -> list[K]:
        """Remove and return the keys whose deadline has passed, in the order of their deadlines."""
        due = []
        while (first := self.next_due()) is not None and first <= now:
            _, _, key = heapq.heappop(self._heap)
            del self._times[key]
            due.append(key)
        return due

    def _compact(self) -> None:
        self._heap = [entry for entry in self._heap if self._times.get(entry[2]) == entry[0]]
        heapq.heapify(self._heap)
