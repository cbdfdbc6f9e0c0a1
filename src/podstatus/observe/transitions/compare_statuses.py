"""The transitions between two statuses of a pod, or two summaries, in causal order.

phase Pending → Running
container app: waiting ContainerCreating → running
condition Ready: False (ContainersNotReady) → True
"""

import sys
from collections.abc import Callable, Iterator, Sequence

import msgspec

from podstatus.kube.objects.pod_status import (
    ContainerStateTerminated,
    ContainerStatus,
    PodCondition,
    PodStatus,
)
from podstatus.kube.scalars.time import Time
from podstatus.observe.summary.container_state import ContainerStateSummary, format_container_state
from podstatus.observe.summary.pod import (
    ConditionSummary,
    ContainerSummary,
    PodSummary,
    summarize_container_state,
)

PHASE = "phase"
CONDITION = "condition"
CONTAINER = "container"
RESTART = "restart"
READINESS = "readiness"
FIRST_SEEN = "seen"
DELETION = "deletion"
FINISHED = "finished"
EVENT = "event"
SYNC = "sync"
FOREIGN_WRITE = "foreign"
AGENT_DOWNTIME = "away"
"""No agent ran before this entry, for its duration."""
TAINT = "taint"
"""Of a node: a taint was set or removed."""
AGENT = "agent"
"""Of a node: its agent was started, or stopped in an orderly way."""
_DURATION_DIGITS = {DELETION: 0, SYNC: 1, AGENT_DOWNTIME: 3}
"""Decimal places of the seconds, by the kinds that have a duration."""


class Transition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One change of a pod or node."""

    kind: str
    """Which part changed: one of the constants of this module."""
    subject: str = ""
    """Condition type or container name; empty for the pod as a whole."""
    before: str = ""
    """The previous phase, condition status or count; empty if there was none."""
    after: str = ""
    state_before: ContainerStateSummary | None = None
    """Of a `container` transition, which has no `before` and `after`; None: there was none."""
    state_after: ContainerStateSummary | None = None
    duration_seconds: float | None = None
    """Grace period of a `deletion`, time that a `sync` took or that the agent was `away`: these
    have no `before` and `after`. None: unknown."""
    reason: str = ""
    message: str = ""

    @property
    def before_text(self) -> str:
        """The value before as text: `Pending`, `terminated Error 3`."""
        return format_container_state(self.state_before) if self.state_before else self.before

    @property
    def after_text(self) -> str:
        """The value after as text: `Running`, `waiting CrashLoopBackOff`, `12.345 s`."""
        if self.duration_seconds is not None:
            return f"{self.duration_seconds:.{_DURATION_DIGITS.get(self.kind, 3)}f} s"
        return format_container_state(self.state_after) if self.state_after else self.after


def has_duration(kind: str) -> bool:
    """Return whether transitions of this kind have `duration_seconds` instead of `after`."""
    return kind in _DURATION_DIGITS


_EMPTY_STATUS = PodStatus()


def status_transitions(old: PodStatus | None, new: PodStatus) -> list[Transition]:
    """Return the transitions, causes before effects: containers, phase, conditions.

    Times, addresses and resources are not transitions.
    """
    old = _EMPTY_STATUS if old is None else old
    transitions: list[Transition] = []
    for lists in _CONTAINER_LISTS:
        before, after = lists(old), lists(new)
        if before is not after:
            transitions.extend(_containers(before or (), after or ()))
    transitions.extend(phase_transitions(old.phase, new))
    if old.conditions is not new.conditions:
        transitions.extend(condition_transitions(old.conditions or (), new.conditions or ()))
    return transitions


_CONTAINER_LISTS: tuple[Callable[[PodStatus], Sequence[ContainerStatus] | None], ...] = (
    lambda status: status.init_container_statuses,
    lambda status: status.container_statuses,
    lambda status: status.ephemeral_container_statuses,
)


def _containers(
    before: Sequence[ContainerStatus], after: Sequence[ContainerStatus]
) -> Iterator[Transition]:
    previous = {status.name: status for status in before}
    for status in after:
        old = previous.get(status.name)
        if old is not status:
            old = old or ContainerStatus(name=status.name)
            is_new_end = not _already_reported(old, status.last_state.terminated)
            yield from container_transitions(
                _summarize(old), _summarize(status), is_new_end=is_new_end
            )


def _summarize(status: ContainerStatus) -> ContainerSummary:
    """The parts that transitions compare, with messages of any length."""
    return ContainerSummary(
        name=status.name,
        state=summarize_container_state(status.state, sys.maxsize),
        last_state=summarize_container_state(status.last_state, sys.maxsize),
        ready=status.ready,
        restarts=status.restart_count,
    )


def _already_reported(old: ContainerStatus, ended: ContainerStateTerminated | None) -> bool:
    """True if this termination was a transition before: as the state, or as the last state."""
    reported = (None, old.state.terminated, old.last_state.terminated)
    return any(_termination_key(it) == _termination_key(ended) for it in reported)


def _termination_key(end: ContainerStateTerminated | None) -> tuple[str, int, Time] | None:
    return None if end is None else (end.container_id, end.exit_code, end.finished_at)


def container_transitions(
    old: ContainerSummary, new: ContainerSummary, *, is_new_end: bool
) -> Iterator[Transition]:
    """Yield the transitions of a container; `is_new_end`: its last state was not seen before.

    A container that waits or runs may have terminated in between: its last state has it.
    """
    before, last = _brief(old.state), new.last_state
    if last is not None and last.is_terminated and is_new_end:
        yield _container_transition(new.name, before, last)
        before = last.brief()
    if new.restarts != old.restarts:
        yield Transition(
            kind=RESTART, subject=new.name, before=str(old.restarts), after=str(new.restarts)
        )
    # A container that terminated twice with the same state has two transitions.
    if _brief(new.state) != before or new.restarts != old.restarts:
        yield _container_transition(new.name, before, new.state)
    if old.ready is not new.ready:
        yield Transition(
            kind=READINESS, subject=new.name, before=str(old.ready), after=str(new.ready)
        )


def _container_transition(
    name: str, before: ContainerStateSummary | None, after: ContainerStateSummary | None
) -> Transition:
    return Transition(
        kind=CONTAINER,
        subject=name,
        state_before=before,
        state_after=_brief(after),
        reason="" if after is None else after.reason,
        message="" if after is None else after.message,
    )


def _brief(state: ContainerStateSummary | None) -> ContainerStateSummary | None:
    return None if state is None else state.brief()


def phase_transitions(before: str, new: PodStatus | PodSummary) -> Iterator[Transition]:
    """Yield the transition of the phase, if it changed."""
    if before != new.phase:
        yield Transition(
            kind=PHASE, before=before, after=new.phase, reason=new.reason, message=new.message
        )


def condition_transitions(
    before: Sequence[PodCondition | ConditionSummary],
    after: Sequence[PodCondition | ConditionSummary],
) -> Iterator[Transition]:
    """Yield the transitions of conditions: changes of status or reason."""
    previous = {condition.type: condition for condition in before}
    for condition in after:
        old = previous.pop(condition.type, None)
        if old is None or (old.status, old.reason) != (condition.status, condition.reason):
            yield Transition(
                kind=CONDITION,
                subject=condition.type,
                before="" if old is None else old.status,
                after=condition.status,
                reason=condition.reason,
                message=condition.message,
            )
    for old in previous.values():
        yield Transition(kind=CONDITION, subject=old.type, before=old.status)


def summary_transitions(old: PodSummary | None, new: PodSummary) -> list[Transition]:
    """Return the transitions between two summaries, in the order of `status_transitions`.

    A summary does not have the ID of a container, so equal terminations are distinguished by the
    restart count.
    """
    return [
        *_summarized_containers(() if old is None else old.containers, new.containers),
        *phase_transitions("" if old is None else old.phase, new),
        *condition_transitions(() if old is None else old.conditions, new.conditions),
    ]


def _summarized_containers(
    before: tuple[ContainerSummary, ...], after: tuple[ContainerSummary, ...]
) -> Iterator[Transition]:
    previous = {container.name: container for container in before}
    for container in after:
        old = previous.get(container.name) or ContainerSummary(name=container.name)
        if old != container:
            is_new_end = _reported_terminations(old) < _termination_count(container)
            yield from container_transitions(old, container, is_new_end=is_new_end)


def _reported_terminations(container: ContainerSummary) -> int:
    is_over = container.state is not None and container.state.is_terminated
    return container.restarts + 1 if is_over else _termination_count(container)


def _termination_count(container: ContainerSummary) -> int:
    """Return the number of terminations, up to the one in `last_state`.

    A container in back-off is not counted as a restart yet.
    """
    is_waiting = container.state is not None and container.state.is_waiting
    return container.restarts + (1 if is_waiting and container.last_state is not None else 0)
