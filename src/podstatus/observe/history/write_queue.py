"""What waits to be written to the history: bounded in number and in bytes.

Of a pod only what has to be known of it is held, and what names it: a spec that nobody else holds
any more would be most of what waits.
"""

import threading
from collections import deque
from typing import Generic, TypeVar

import msgspec

from podstatus.kube.objects.pod import PodUID
from podstatus.observe.transitions.status_transitions import Transition

MAX_ENTRIES = 50_000
"""Changes: more than a minute of 500 a second."""
MAX_BYTES = 128 * 2**20
"""About. A change of a pod with one container has 3 KB, so it is 40,000 of those."""

S = TypeVar("S")


class QueuedState(msgspec.Struct, Generic[S], frozen=True, gc=False):
    """A pod was told to be like this."""

    at: int
    uid: PodUID
    namespace: str
    name: str
    state: S
    deletion: str | None
    """What is said of its deletion; None if nobody has asked for one."""
    size: int


class QueuedTransition(msgspec.Struct, frozen=True, gc=False):
    """Something else was told of a pod."""

    at: int
    uid: PodUID
    namespace: str
    name: str
    transition: Transition
    size: int


class WriteQueue(Generic[S]):
    """A queue that may be added to from any thread; one takes from it."""

    def __init__(self, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._entries: deque[QueuedState[S] | QueuedTransition] = deque()
        self._bytes = 0
        self._lock = threading.Lock()
        self.dropped_states = self.dropped_transitions = 0
        """Those that did not fit. Counted under the lock, or two threads would count as one."""

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, entry: QueuedState[S] | QueuedTransition) -> None:
        """Put it at the end, or count it if it does not fit."""
        with self._lock:
            size = self._bytes + entry.size
            if len(self._entries) < self._max_entries and size <= self._max_bytes:
                self._entries.append(entry)
                self._bytes = size
            elif isinstance(entry, QueuedTransition):
                self.dropped_transitions += 1
            else:
                self.dropped_states += 1

    def pop(self, limit: int) -> list[QueuedState[S] | QueuedTransition]:
        """The oldest, so many at most; they are not in it any more."""
        with self._lock:
            count = min(len(self._entries), limit)
            taken = [self._entries.popleft() for _ in range(count)]
            self._bytes -= sum(entry.size for entry in taken)
        return taken

    def requeue(self, entries: list[QueuedState[S] | QueuedTransition]) -> None:
        """They are the oldest again, whatever came meanwhile."""
        with self._lock:
            self._entries.extendleft(reversed(entries))
            self._bytes += sum(entry.size for entry in entries)
