"""What is new about a pod that was noted before, by one who sees it for the first time."""

from collections.abc import Mapping, Sequence

from msgspec import structs

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
_CRASH_LOOP = "waiting CrashLoopBackOff"
_WAITING = "waiting"
_NOT_TERMINATED = ("", "running", "waiting ContainerCreating", "waiting PodInitializing")
"""States of an attempt that has not ended. One that waits for anything else may have."""


def resume_transitions(
    last: Mapping[TransitionKey, str], current: Sequence[Transition]
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
        before = shown.get(key, "")
        if before != transition.after:
            found.append(structs.replace(transition, before=before))
            shown[key] = transition.after
    return found


def _with_removals(
    last: Mapping[TransitionKey, str], seen: Sequence[Transition]
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
    end: Transition, last: Mapping[TransitionKey, str], newest: Mapping[TransitionKey, Transition]
) -> bool:
    """Whether a container ended, and waits or was started again, while nobody noted it."""
    noted, now = last.get(_key(end), ""), newest[_key(end)].after
    restart = newest.get((RESTART, end.subject))
    restarts = 0 if restart is None else int(restart.after) - int(last.get(_key(restart), "0"))
    # One that waited to be started again had ended before.
    if restarts > (1 if noted == _CRASH_LOOP else 0):
        return True
    return noted in _NOT_TERMINATED and now.startswith(_WAITING) and now != noted


def _key(transition: Transition) -> TransitionKey:
    return transition.kind, transition.subject
