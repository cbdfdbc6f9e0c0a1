"""Times that things wait for, the next one first."""

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_COMPACT_SLACK = 64


class TimerHeap(Generic[K]):
    """One time for each key. What was cancelled stays in the heap until there is much of it."""

    def __init__(self) -> None:
        self._times: dict[K, int] = {}
        self._heap: list[tuple[int, int, K]] = []
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._times)

    @property
    def heap_size(self) -> int:
        """How many entries are kept, those that were cancelled too."""
        return len(self._heap)

    def pending_keys(self) -> list[K]:
        """All that waits."""
        return list(self._times)

    def set(self, key: K, at: int) -> None:
        """It waits for this time, and no other."""
        if self._times.get(key) == at:
            return
        self._times[key] = at
        self._sequence += 1
        heapq.heappush(self._heap, (at, self._sequence, key))
        if len(self._heap) > 2 * len(self._times) + _COMPACT_SLACK:
            self._compact()

    def cancel(self, key: K) -> None:
        """It waits for nothing."""
        self._times.pop(key, None)

    def next_due(self) -> int | None:
        """The next time; None: nothing waits."""
        while self._heap and self._times.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now: int) -> list[K]:
        """What has waited for long enough, in the order of the times; it waits no more."""
        found = []
        while (first := self.next_due()) is not None and first <= now:
            _, _, key = heapq.heappop(self._heap)
            del self._times[key]
            found.append(key)
        return found

    def _compact(self) -> None:
        self._heap = [entry for entry in self._heap if self._times.get(entry[2]) == entry[0]]
        heapq.heapify(self._heap)
