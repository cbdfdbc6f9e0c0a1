"""Transitions of a pod that an earlier process recorded and this one sees for the first time."""

from collections.abc import Mapping, Sequence

from msgspec import structs

from podstatus.observe.summary.container_state import CRASH_LOOP_BACK_OFF, ContainerStateSummary
from podstatus.observe.transitions.compare_statuses import (
    CONDITION,
    CONTAINER,
    READINESS,
    RESTART,
    Transition,
)

TransitionKey = tuple[str, str]
"""Kind and subject of a transition."""
_CONTAINER_KINDS = (CONTAINER, RESTART, READINESS)
TransitionValue = str | ContainerStateSummary | None
"""The new value of a transition: the state of a container, or a text."""


def resume_transitions(
    last: Mapping[TransitionKey, TransitionValue], current: Sequence[Transition]
) -> list[Transition]:
    """Return what changed since the last recorded state of each part of the pod.

    `current`: the transitions from an empty state to the current one.
    """
    transitions = _with_removals(last, current)
    newest = {_key(transition): transition for transition in transitions}
    recorded, changed = dict(last), []
    for transition in transitions:
        key = _key(transition)
        if newest[key] is not transition and not _missed_termination(transition, last, newest):
            continue
        before = recorded.get(key)
        after = transition.state_after if transition.kind == CONTAINER else transition.after
        if (before or None) != (after or None):
            changed.append(_with_before(transition, before))
            recorded[key] = after
    return changed


def _with_removals(
    last: Mapping[TransitionKey, TransitionValue], current: Sequence[Transition]
) -> list[Transition]:
    """Add transitions for recorded parts that no longer exist."""
    keys = {_key(transition) for transition in current}
    parts = [it for it in current if it.kind in _CONTAINER_KINDS]
    unready = [
        Transition(kind=READINESS, subject=name, after="False")
        for kind, name in last
        if kind == READINESS and (kind, name) not in keys
    ]
    removed = [
        Transition(kind=CONDITION, subject=type_)
        for kind, type_ in last
        if kind == CONDITION and (kind, type_) not in keys
    ]
    return [*parts, *unready, *current[len(parts) :], *removed]


def _missed_termination(
    end: Transition,
    last: Mapping[TransitionKey, TransitionValue],
    newest: Mapping[TransitionKey, Transition],
) -> bool:
    """True if a container terminated, and waits or was restarted, without a record."""
    value, now = last.get(_key(end)), newest[_key(end)].state_after
    recorded = value if isinstance(value, ContainerStateSummary) else None
    is_crash_loop = recorded is not None and recorded.reason == CRASH_LOOP_BACK_OFF
    # A container in back-off had terminated before.
    if _new_restarts(end.subject, last, newest) > (1 if is_crash_loop else 0):
        return True
    may_have_ended = recorded is not None and not (recorded.is_running or recorded.is_starting)
    return not may_have_ended and now is not None and now.is_waiting and now != recorded


def _new_restarts(
    container: str,
    last: Mapping[TransitionKey, TransitionValue],
    newest: Mapping[TransitionKey, Transition],
) -> int:
    restart = newest.get((RESTART, container))
    stored = last.get((RESTART, container))
    before = int(stored) if isinstance(stored, str) and stored else 0
    return 0 if restart is None else int(restart.after) - before


def _with_before(transition: Transition, before: TransitionValue) -> Transition:
    if isinstance(before, ContainerStateSummary):
        return structs.replace(transition, state_before=before)
    return structs.replace(transition, before=before or "")


def _key(transition: Transition) -> TransitionKey:
    return transition.kind, transition.subject
