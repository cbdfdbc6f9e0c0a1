"""The transitions between two states of a node: conditions and taints.

condition Ready: True → Unknown (NodeStatusUnknown)
taint node.kubernetes.io/unreachable:NoExecute: → set
"""

from collections.abc import Callable, Iterator, Mapping

import msgspec
from msgspec import structs

from podstatus.observe.ports import NodeSummary
from podstatus.observe.transitions.compare_statuses import (
    CONDITION,
    FIRST_SEEN,
    TAINT,
    Transition,
)
from podstatus.observe.transitions.resume import TransitionKey

SET = "set"
"""The value of a taint that a node has."""
FOUND_AT_START = "FoundAtStart"
"""Reason of a taint that was found when recording started: it was set earlier."""
RUNNING, STOPPED = "running", "stopped"
"""The values of an agent."""

NodeValues = Mapping[TransitionKey, str]
"""The value of each condition and taint, by kind and subject."""


class NodeState(msgspec.Struct, frozen=True, kw_only=True):
    """What transitions of a node compare."""

    name: str
    values: NodeValues
    reason: str = ""
    message: str = ""
    """Reason and message of the condition Ready."""


def node_state(node: NodeSummary) -> NodeState:
    conditions = {(CONDITION, type_): status for type_, status in node.conditions.items()}
    taints = {(TAINT, str(taint)): SET for taint in node.taints}
    return NodeState(
        name=node.name, values=conditions | taints, reason=node.reason, message=node.message
    )


def node_transitions(before: NodeValues, after: NodeState) -> list[Transition]:
    """Return the transitions, conditions first; a value that is gone becomes empty."""
    gone = [key for key in before if key not in after.values]
    keys = sorted([*after.values, *gone], key=lambda key: (key[0], key[1] != "Ready", key[1]))
    return [
        _transition(key, before.get(key, ""), after)
        for key in keys
        if before.get(key, "") != after.values.get(key, "")
    ]


def _transition(key: TransitionKey, before: str, state: NodeState) -> Transition:
    kind, subject = key
    is_ready = key == (CONDITION, "Ready")
    return Transition(
        kind=kind,
        subject=subject,
        before=before,
        after=state.values.get(key, ""),
        reason=state.reason if is_ready else "",
        message=state.message if is_ready else "",
    )


def _found_at_start(change: Transition) -> Transition:
    is_set = change.kind == TAINT and change.after
    return structs.replace(change, reason=FOUND_AT_START) if is_set else change


class NodeTracker:
    """The last values of each node. For one thread at a time."""

    def __init__(self) -> None:
        self._states: dict[str, NodeState] = {}

    def savepoint(self) -> Callable[[], None]:
        """Return a function that restores the current state."""
        states = dict(self._states)

        def rollback() -> None:
            self._states = states

        return rollback

    def transitions(
        self, state: NodeState, load_last: Callable[[str], NodeValues]
    ) -> list[Transition]:
        """Return the transitions to a state; `load_last` reads what is recorded of a new node."""
        before = self._states.get(state.name)
        self._states[state.name] = state
        if before is not None:
            return node_transitions(before.values, state)
        last = load_last(state.name)
        found = map(_found_at_start, node_transitions(last, state))
        return [*[Transition(kind=FIRST_SEEN)] * (not last), *found]

    def forget(self, name: str) -> None:
        """Forget a removed node; if it comes back, it is seen for the first time."""
        self._states.pop(name, None)

    def baselines(self) -> Iterator[tuple[str, list[Transition]]]:
        """Yield all nodes, each with the transitions of a node that is seen first."""
        for name, state in self._states.items():
            yield name, [Transition(kind=FIRST_SEEN), *node_transitions({}, state)]
