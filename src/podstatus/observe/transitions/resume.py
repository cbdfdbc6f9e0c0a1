"""What is new about a pod that was noted before, by one who sees it for the first time."""

from collections.abc import Mapping, Sequence

from msgspec import structs

from podstatus.observe.summary.container_state import CRASH_LOOP_BACK_OFF, ContainerStateSummary
from podstatus.observe.transitions.status_transitions import (
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
"""What a transition led to: the state of a container, or a text."""


def resume_transitions(
    last: Mapping[TransitionKey, TransitionValue], current: Sequence[Transition]
) -> list[Transition]:
    """What changed, given the last word that was noted on each part of the pod.

    `current` are what would be told of it as it is now, if nothing had been noted.
    """
    seen = _with_removals(last, current)
    newest = {_key(transition): transition for transition in seen}
    shown, found = dict(last), []
    for transition in seen:
        key = _key(transition)
        if newest[key] is not transition and not _missed_termination(transition, last, newest):
            continue
        before, after = shown.get(key), _value(transition)
        if (before or None) != (after or None):
            found.append(_with_before(transition, before))
            shown[key] = after
    return found


def _with_removals(
    last: Mapping[TransitionKey, TransitionValue], seen: Sequence[Transition]
) -> list[Transition]:
    """All that can be said, also that something is not so any more."""
    said = {_key(transition) for transition in seen}
    parts = [it for it in seen if it.kind in _CONTAINER_KINDS]
    unready = [
        Transition(kind=READINESS, subject=name, after="False")
        for kind, name in last
        if kind == READINESS and (kind, name) not in said
    ]
    removed = [
        Transition(kind=CONDITION, subject=type_)
        for kind, type_ in last
        if kind == CONDITION and (kind, type_) not in said
    ]
    return [*parts, *unready, *seen[len(parts) :], *removed]


def _missed_termination(
    end: Transition,
    last: Mapping[TransitionKey, TransitionValue],
    newest: Mapping[TransitionKey, Transition],
) -> bool:
    """Whether a container ended, and waits or was started again, while nobody noted it."""
    stored, now = last.get(_key(end)), newest[_key(end)].state_after
    noted = stored if isinstance(stored, ContainerStateSummary) else None
    is_crash_loop = noted is not None and noted.reason == CRASH_LOOP_BACK_OFF
    # One that waited to be started again had ended before.
    if _new_restarts(end.subject, last, newest) > (1 if is_crash_loop else 0):
        return True
    may_have_ended = noted is not None and not (noted.is_running or noted.is_starting)
    return not may_have_ended and now is not None and now.is_waiting and now != noted


def _new_restarts(
    container: str,
    last: Mapping[TransitionKey, TransitionValue],
    newest: Mapping[TransitionKey, Transition],
) -> int:
    restart = newest.get((RESTART, container))
    stored = last.get((RESTART, container))
    before = int(stored) if isinstance(stored, str) and stored else 0
    return 0 if restart is None else int(restart.after) - before


def _value(transition: Transition) -> TransitionValue:
    return transition.state_after if transition.kind == CONTAINER else transition.after


def _with_before(transition: Transition, before: TransitionValue) -> Transition:
    if isinstance(before, ContainerStateSummary):
        return structs.replace(transition, state_before=before)
    return structs.replace(transition, before=before or "")


def _key(transition: Transition) -> TransitionKey:
    return transition.kind, transition.subject
