"""Turn what was seen of nodes into the records that the history writer appends."""

from collections.abc import Callable, Iterable

from podstatus.observe.history.node_tables import NodeLoadSample
from podstatus.observe.history.sqlite_store import HistoryEntry, NodeRecords, node_entry
from podstatus.observe.history.write_queue import QueuedNode
from podstatus.observe.transitions.compare_statuses import FINISHED, Transition
from podstatus.observe.transitions.node_transitions import NodeState, NodeTracker, NodeValues

_ENTRY_BYTES = 500
_VALUE_BYTES = 150
"""Memory of objects without the texts that others choose."""


def estimate_node_size(seen: NodeState | HistoryEntry | NodeLoadSample) -> int:
    """Return the estimated memory, in bytes."""
    match seen:
        case NodeState():
            return _ENTRY_BYTES + len(seen.message) + _VALUE_BYTES * len(seen.values)
        case HistoryEntry():
            return _ENTRY_BYTES + len(seen.transition.reason) + len(seen.transition.message)
        case _:
            return _ENTRY_BYTES


class NodeChanges:
    """The nodes that were seen, with their last states. For one thread at a time."""

    def __init__(self, load_last: Callable[[str], NodeValues]) -> None:
        """`load_last` reads the recorded values of a node, empty if it is unknown."""
        self._load_last = load_last
        self._tracker = NodeTracker()

    def savepoint(self) -> Callable[[], None]:
        """Return a function that restores the current state."""
        return self._tracker.savepoint()

    def records(self, changes: Iterable[QueuedNode]) -> NodeRecords:
        """Return the records of changes in order. Raises the errors of `load_last`."""
        entries: list[HistoryEntry] = []
        samples: list[NodeLoadSample] = []
        for change in changes:
            match change.seen:
                case NodeLoadSample() as sample:
                    samples.append(sample)
                case NodeState() as state:
                    transitions = self._tracker.transitions(state, self._load_last)
                    entries += [node_entry(state.name, change.at, it) for it in transitions]
                case entry:
                    if entry.transition.kind == FINISHED:
                        self._tracker.forget(entry.name)
                    entries.append(entry)
        return NodeRecords(entries, samples)

    def baseline(self, at: int, gap: Transition) -> NodeRecords:
        """Return all nodes as first seen after a gap: their earlier entries are lost."""
        return NodeRecords(
            [
                node_entry(name, at, transition)
                for name, transitions in self._tracker.baselines()
                for transition in (gap, *transitions)
            ]
        )
