"""The transitions between two statuses of a pod, in causal order.

phase Pending → Running
container app: waiting ContainerCreating → running
condition Ready: False (ContainersNotReady) → True
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import msgspec

from podstatus.kube.objects.pod_status import (
    ContainerState,
    ContainerStateTerminated,
    ContainerStatus,
    PodStatus,
)
from podstatus.kube.scalars.time import Time
from podstatus.observe.summary.container_state import (
    ContainerStateSummary,
    brief_container_state,
    format_container_state,
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
"""No agent ran before this entry, for the duration in `after`."""


class Transition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One change of a pod."""

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
    reason: str = ""
    message: str = ""

    @property
    def before_text(self) -> str:
        """The value before as text: `Pending`, `terminated Error 3`."""
        return format_container_state(self.state_before) if self.state_before else self.before

    @property
    def after_text(self) -> str:
        """The value after as text."""
        return format_container_state(self.state_after) if self.state_after else self.after


class Condition(Protocol):
    """A condition of a pod, or its summary."""

    @property
    def type(self) -> str:
        """Type of the condition, such as Ready."""

    @property
    def status(self) -> str:
        """Status: True, False or Unknown."""

    @property
    def reason(self) -> str:
        """Machine-readable reason of the status, in CamelCase."""

    @property
    def message(self) -> str:
        """Human-readable explanation of the status."""


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
    if old.phase != new.phase:
        transitions.append(
            Transition(
                kind=PHASE,
                before=old.phase,
                after=new.phase,
                reason=new.reason,
                message=new.message,
            )
        )
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
            yield from _container(old or ContainerStatus(name=status.name), status)


def _container(old: ContainerStatus, new: ContainerStatus) -> Iterator[Transition]:
    """A container that waits or runs may have terminated in between: its last state has it."""
    before = brief_container_state(old.state)
    ended = new.last_state.terminated
    if ended is not None and not _already_reported(old, ended):
        last = brief_container_state(new.last_state)
        yield Transition(
            kind=CONTAINER,
            subject=new.name,
            state_before=before,
            state_after=last,
            reason=ended.reason,
            message=ended.message,
        )
        before = last
    if new.restart_count != old.restart_count:
        yield Transition(
            kind=RESTART,
            subject=new.name,
            before=str(old.restart_count),
            after=str(new.restart_count),
        )
    now = brief_container_state(new.state)
    # A container that terminated twice with the same state has two transitions.
    if now != before or new.restart_count != old.restart_count:
        reason, message = _reason_and_message(new.state)
        yield Transition(
            kind=CONTAINER,
            subject=new.name,
            state_before=before,
            state_after=now,
            reason=reason,
            message=message,
        )
    if old.ready is not new.ready:
        yield Transition(
            kind=READINESS,
            subject=new.name,
            before=_bool_text(old.ready),
            after=_bool_text(new.ready),
        )


def _already_reported(old: ContainerStatus, ended: ContainerStateTerminated) -> bool:
    """True if this termination was a transition before: as the state, or as the last state."""
    reported = (old.state.terminated, old.last_state.terminated)
    return any(
        it is not None and _termination_key(it) == _termination_key(ended) for it in reported
    )


def _termination_key(end: ContainerStateTerminated) -> tuple[str, int, Time]:
    return end.container_id, end.exit_code, end.finished_at


def _reason_and_message(state: ContainerState) -> tuple[str, str]:
    if (ended := state.terminated) is not None:
        return ended.reason, ended.message
    if state.waiting is not None:
        return state.waiting.reason, state.waiting.message
    return "", ""


def condition_transitions(
    before: Sequence[Condition], after: Sequence[Condition]
) -> Iterator[Transition]:
    """Yield the transitions of conditions, or of their summaries: changes of status or reason."""
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


def _bool_text(ready: bool) -> str:  # noqa: FBT001 - it is the value
    return "True" if ready else "False"
