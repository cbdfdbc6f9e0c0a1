"""The queue of changes to be written to the history, bounded in number and bytes.

It holds the state of a pod and its name, not the pod: a spec that has no other reference would be
most of its memory.
"""

import threading
from collections import deque
from typing import Generic, TypeVar

import msgspec

from podstatus.kube.objects.pod import PodUID
from podstatus.observe.history.node_tables import NodeLoadSample
from podstatus.observe.history.sqlite_store import HistoryEntry
from podstatus.observe.transitions.compare_statuses import Transition
from podstatus.observe.transitions.node_transitions import NodeState

MAX_ENTRIES = 50_000
"""Changes: more than a minute of 500 a second."""
MAX_BYTES = 128 * 2**20
"""Estimated. A change of a pod with one container has 3 KB, so 40,000 of those."""

S = TypeVar("S")


class QueuedState(msgspec.Struct, Generic[S], frozen=True, gc=False):
    """The state of a pod at a time."""

    at: int
    uid: PodUID
    namespace: str
    name: str
    state: S
    deletion: Transition | None
    """None if it is not being deleted."""
    size: int


class QueuedTransition(msgspec.Struct, frozen=True, gc=False):
    """A transition of a pod that is not derived from its state."""

    entry: HistoryEntry
    size: int


class QueuedNode(msgspec.Struct, frozen=True, gc=False):
    """What was seen of a node: its state, an entry that is not derived from it, or its load."""

    at: int
    seen: NodeState | HistoryEntry | NodeLoadSample
    size: int


class WriteQueue(Generic[S]):
    """A thread-safe queue with one consumer."""

    def __init__(self, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._entries: deque[QueuedState[S] | QueuedTransition | QueuedNode] = deque()
        self._bytes = 0
        self._lock = threading.Lock()
        self.dropped_states = self.dropped_transitions = 0
        """Entries dropped because the queue was full. Counted under the lock."""

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, entry: QueuedState[S] | QueuedTransition | QueuedNode) -> None:
        """Append an entry, or count it as dropped if it does not fit."""
        with self._lock:
            size = self._bytes + entry.size
            if len(self._entries) < self._max_entries and size <= self._max_bytes:
                self._entries.append(entry)
                self._bytes = size
            elif isinstance(entry, QueuedTransition):
                self.dropped_transitions += 1
            else:
                self.dropped_states += 1

    def pop(self, limit: int) -> list[QueuedState[S] | QueuedTransition | QueuedNode]:
        """Remove and return the oldest entries, at most `limit`."""
        with self._lock:
            count = min(len(self._entries), limit)
            popped = [self._entries.popleft() for _ in range(count)]
            self._bytes -= sum(entry.size for entry in popped)
        return popped

    def requeue(self, entries: list[QueuedState[S] | QueuedTransition | QueuedNode]) -> None:
        """Put entries back at the front."""
        with self._lock:
            self._entries.extendleft(reversed(entries))
            self._bytes += sum(entry.size for entry in entries)
