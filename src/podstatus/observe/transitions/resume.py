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

Key = tuple[str, str]
"""Kind and subject of a transition."""
_OF_CONTAINERS = (CONTAINER, RESTART, READINESS)
_BACK_OFF = "waiting CrashLoopBackOff"
_WAITS = "waiting"
_BEFORE_AN_END = ("", "running", "waiting ContainerCreating", "waiting PodInitializing")
"""States of an attempt that has not ended. One that waits for anything else may have."""


def changes_since(last: Mapping[Key, str], words: Sequence[Transition]) -> list[Transition]:
    """What changed, given the last word that was noted on each part of the pod.

    `words` are what would be told of it as it is now, if nothing had been noted.
    """
    seen = _all_words(last, words)
    newest = {_key(transition): transition for transition in seen}
    shown, found = dict(last), []
    for transition in seen:
        key = _key(transition)
        if newest[key] is not transition and not _ended_unseen(transition, last, newest):
            continue
        before = shown.get(key, "")
        if before != transition.after:
            found.append(structs.replace(transition, before=before))
            shown[key] = transition.after
    return found


def _all_words(last: Mapping[Key, str], seen: Sequence[Transition]) -> list[Transition]:
    """All that can be said, also that something is not so any more."""
    said = {_key(transition) for transition in seen}
    parts = [it for it in seen if it.kind in _OF_CONTAINERS]
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


def _ended_unseen(
    end: Transition, last: Mapping[Key, str], newest: Mapping[Key, Transition]
) -> bool:
    """Whether a container ended, and waits or was started again, while nobody noted it."""
    noted, now = last.get(_key(end), ""), newest[_key(end)].after
    restart = newest.get((RESTART, end.subject))
    restarts = 0 if restart is None else int(restart.after) - int(last.get(_key(restart), "0"))
    # One that waited to be started again had ended before.
    if restarts > (1 if noted == _BACK_OFF else 0):
        return True
    return noted in _BEFORE_AN_END and now.startswith(_WAITS) and now != noted


def _key(transition: Transition) -> Key:
    return transition.kind, transition.subject
