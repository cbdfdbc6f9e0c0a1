"""What changed between two summaries of a pod, for those who keep no more of it.

As `transitions` does of two statuses, and in the same order. A summary does not say when an attempt
ended, so ends that look alike are told apart by how often the container was started.
"""

from collections.abc import Iterator

from podstatus.observe.summary.pod import ContainerSummary, PodSummary
from podstatus.observe.transitions.status_transitions import (
    CONTAINER,
    PHASE,
    READINESS,
    RESTART,
    Transition,
    condition_transitions,
)

_TERMINATED = "terminated"
_WAITING = "waiting"


def summary_transitions(old: PodSummary | None, new: PodSummary) -> list[Transition]:
    """What changed, causes before what follows from them: containers, phase, conditions."""
    found = list(_containers(() if old is None else old.containers, new.containers))
    before = "" if old is None else old.phase
    if before != new.phase:
        found.append(
            Transition(
                kind=PHASE,
                before=before,
                after=new.phase,
                reason=new.reason,
                message=new.message,
            )
        )
    found.extend(condition_transitions(() if old is None else old.conditions, new.conditions))
    return found


def _containers(
    before: tuple[ContainerSummary, ...], after: tuple[ContainerSummary, ...]
) -> Iterator[Transition]:
    known = {container.name: container for container in before}
    for container in after:
        old = known.get(container.name) or ContainerSummary(name=container.name)
        if old != container:
            yield from _container(old, container)


def _container(old: ContainerSummary, new: ContainerSummary) -> Iterator[Transition]:
    shown = old.state
    if new.last.startswith(_TERMINATED) and not _already_reported(old, new):
        yield _container_transition(new.name, shown, new.last, "")
        shown = new.last
    if new.restarts != old.restarts:
        yield Transition(
            kind=RESTART, subject=new.name, before=str(old.restarts), after=str(new.restarts)
        )
    # One that has ended twice in the same way has ended twice.
    if new.state != shown or new.restarts != old.restarts:
        yield _container_transition(new.name, shown, new.state, new.message)
    if old.ready is not new.ready:
        yield Transition(
            kind=READINESS, subject=new.name, before=str(old.ready), after=str(new.ready)
        )


def _already_reported(old: ContainerSummary, new: ContainerSummary) -> bool:
    """Whether the end that `last` tells of was seen before: as the state, or as the last one."""
    told = old.restarts + 1 if old.state.startswith(_TERMINATED) else _termination_count(old)
    return told >= _termination_count(new)


def _termination_count(container: ContainerSummary) -> int:
    """How many attempts have ended, up to the one that `last` tells of.

    One that waits to be started again has not been counted as a restart yet.
    """
    waits = container.state.startswith(_WAITING) and bool(container.last)
    return container.restarts + (1 if waits else 0)


def _container_transition(name: str, before: str, after: str, message: str) -> Transition:
    return Transition(
        kind=CONTAINER,
        subject=name,
        before=before,
        after=after,
        reason=_reason(after),
        message=message,
    )


def _reason(state: str) -> str:
    """Of a state in a few words: `waiting CrashLoopBackOff`, `terminated Error 3`."""
    word, _, rest = state.partition(" ")
    if word == _WAITING:
        return rest
    return rest.rpartition(" ")[0] if word == _TERMINATED else ""
