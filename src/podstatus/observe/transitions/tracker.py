"""Track the last state of each pod, and find its transitions: of statuses or of summaries.

The memory of each entry is estimated from the parts that can be long, so that a queue of them can
be bounded in bytes.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

import msgspec

from podstatus.kube.objects.meta import NamedPod, ObjectReference
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.pod_status import ContainerState, PodStatus
from podstatus.observe.history.write_queue import QueuedState
from podstatus.observe.summary.pod import PodSummary
from podstatus.observe.transitions.compare_statuses import (
    DELETION,
    FIRST_SEEN,
    Transition,
    status_transitions,
    summary_transitions,
)
from podstatus.observe.transitions.resume import (
    TransitionKey,
    TransitionValue,
    resume_transitions,
)

_STATUS_BYTES = 700
_CONDITION_BYTES = 250
_CONTAINER_BYTES = 1_500
_CONTAINER_SUMMARY_BYTES = 300
_CONTAINER_STATE_BYTES = 150
_LABEL_BYTES = 150
"""Memory of objects without the texts that others choose, measured on typical ones."""


def estimate_status_size(status: PodStatus) -> int:
    """Return the estimated memory of a status, in bytes."""
    size = _STATUS_BYTES + len(status.message)
    for condition in status.conditions or ():
        size += _CONDITION_BYTES + len(condition.message)
    for containers in (
        status.init_container_statuses,
        status.container_statuses,
        status.ephemeral_container_statuses,
    ):
        for container in containers or ():
            size += (
                _CONTAINER_BYTES
                + _message_length(container.state)
                + _message_length(container.last_state)
            )
    return size


def _message_length(state: ContainerState) -> int:
    if state.terminated is not None:
        return len(state.terminated.message)
    return 0 if state.waiting is None else len(state.waiting.message)


def estimate_summary_size(pod: PodSummary) -> int:
    """Return the estimated memory of a summary, in bytes."""
    size = _STATUS_BYTES + len(pod.message) + _LABEL_BYTES * len(pod.labels)
    for condition in pod.conditions:
        size += _CONDITION_BYTES + len(condition.message)
    for container in pod.containers:
        size += _CONTAINER_SUMMARY_BYTES
        for state in (container.state, container.last_state):
            size += 0 if state is None else _CONTAINER_STATE_BYTES + len(state.message)
    return size


MAX_TRACKED_PODS = 20_000
"""Pods whose last state is retained; that of others is read from the history."""


P = TypeVar("P", bound=NamedPod)
S = TypeVar("S")


class TransitionSource(msgspec.Struct, Generic[P, S], frozen=True, kw_only=True):
    """How to derive transitions from a kind of pod object."""

    state_of: Callable[[P], S]
    """Returns the state to retain for the next comparison."""
    diff: Callable[[S | None, S], list[Transition]]
    """Returns the transitions between two states."""
    deletion: Callable[[P], Transition | None]
    """Returns its deletion, with the grace period; None if it is not being deleted."""
    estimate_size: Callable[[S], int]
    """Returns the estimated memory of a state, in bytes."""


class TransitionTracker(Generic[P, S]):
    """The last state of each pod. For one thread at a time."""

    def __init__(self, source: TransitionSource[P, S]) -> None:
        self._source = source
        self._states: dict[PodUID, S] = {}
        """Last states, the most recently updated last."""
        self._names: dict[PodUID, tuple[str, str]] = {}
        """Namespace and name of these pods."""
        self._deleting: set[PodUID] = set()
        self._finished: set[PodUID] = set()
        """Pods whose end may not be in the history yet."""

    def __len__(self) -> int:
        return len(self._states)

    def savepoint(self) -> Callable[[], None]:
        """Return a function that restores the current state."""
        states, deleting = dict(self._states), set(self._deleting)
        finished, names = set(self._finished), dict(self._names)

        def rollback() -> None:
            self._states, self._deleting, self._finished = states, deleting, finished
            self._names = names

        return rollback

    def capture(self, at: int, pod: P) -> QueuedState[S]:
        """Return what is needed to compute the transitions of a pod later."""
        source = self._source
        state = source.state_of(pod)
        uid, deletion = PodUID(pod.uid), source.deletion(pod)
        return QueuedState(
            at, uid, pod.namespace, pod.name, state, deletion, source.estimate_size(state)
        )

    def transitions(
        self,
        entry: QueuedState[S],
        load_last: Callable[[PodUID], Mapping[TransitionKey, TransitionValue]],
    ) -> list[Transition]:
        """Return the transitions of a pod; `load_last` reads the recorded state of a new one."""
        uid, state, deletion = entry.uid, entry.state, entry.deletion
        before = self._states.pop(uid, None)
        if before is None:
            last = {} if uid in self._finished else load_last(uid)
            transitions = self._initial_transitions(uid, state, last)
        else:
            transitions = self._source.diff(before, state)
        self._states[uid] = state
        self._names[uid] = entry.namespace, entry.name
        if deletion is not None and uid not in self._deleting:
            self._deleting.add(uid)
            transitions.insert(0, deletion)
        return transitions

    def baselines(self) -> Iterator[tuple[NamedPod, list[Transition]]]:
        """Yield all retained pods, each with the transitions of a pod that is seen first."""
        for uid, state in self._states.items():
            namespace, name = self._names[uid]
            pod = ObjectReference(namespace=namespace, name=name, uid=uid)
            yield pod, self._initial_transitions(uid, state, {})

    def finish(self, uid: PodUID) -> None:
        """Forget a pod that has finished; if it comes back, it is seen for the first time."""
        self._forget(uid)
        self._finished.add(uid)

    def prune(self) -> None:
        """Retain only the latest updated pods; call it when the history has all transitions."""
        self._finished.clear()
        for uid in list(self._states)[: max(0, len(self._states) - MAX_TRACKED_PODS)]:
            self._forget(uid)

    def _forget(self, uid: PodUID) -> None:
        self._states.pop(uid, None)
        self._names.pop(uid, None)
        self._deleting.discard(uid)

    def _initial_transitions(
        self, uid: PodUID, state: S, last: Mapping[TransitionKey, TransitionValue]
    ) -> list[Transition]:
        """Return the transitions of a pod that is seen first; `last` is its recorded state."""
        transitions = self._source.diff(None, state)
        if not last:
            return [Transition(kind=FIRST_SEEN), *transitions]
        if (DELETION, "") in last:
            self._deleting.add(uid)
        return resume_transitions(last, transitions)


def _status_deletion(pod: Pod) -> Transition | None:
    if pod.metadata.deletion_timestamp is None:
        return None
    grace = pod.metadata.deletion_grace_period_seconds
    return Transition(kind=DELETION, duration_seconds=grace)


STATUS_SOURCE: TransitionSource[Pod, PodStatus] = TransitionSource(
    state_of=lambda pod: pod.status,
    diff=status_transitions,
    deletion=_status_deletion,
    estimate_size=estimate_status_size,
)
SUMMARY_SOURCE: TransitionSource[PodSummary, PodSummary] = TransitionSource(
    state_of=lambda pod: pod,
    diff=summary_transitions,
    deletion=lambda pod: Transition(kind=DELETION) if pod.deleting else None,
    estimate_size=estimate_summary_size,
)
