"""What changed between two summaries of a pod, for those who keep no more of it.

As `transitions` does of two statuses, and in the same order. A summary does not say when an attempt
ended, so ends that look alike are told apart by how often the container was started.
"""

from collections.abc import Iterator

from podstatus.observe.summary.container_state import ContainerStateSummary
from podstatus.observe.summary.pod import ContainerSummary, PodSummary
from podstatus.observe.transitions.status_transitions import (
    CONTAINER,
    PHASE,
    READINESS,
    RESTART,
    Transition,
    condition_transitions,
)


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
    shown, last = _brief(old.state), new.last_state
    if last is not None and last.is_terminated and not _already_reported(old, new):
        yield _container_transition(new.name, shown, last)
        shown = last.brief()
    if new.restarts != old.restarts:
        yield Transition(
            kind=RESTART, subject=new.name, before=str(old.restarts), after=str(new.restarts)
        )
    # One that has ended twice in the same way has ended twice.
    if _brief(new.state) != shown or new.restarts != old.restarts:
        yield _container_transition(new.name, shown, new.state)
    if old.ready is not new.ready:
        yield Transition(
            kind=READINESS, subject=new.name, before=str(old.ready), after=str(new.ready)
        )


def _already_reported(old: ContainerSummary, new: ContainerSummary) -> bool:
    """Whether the end that `last` tells of was seen before: as the state, or as the last one."""
    is_over = old.state is not None and old.state.is_terminated
    reported = old.restarts + 1 if is_over else _termination_count(old)
    return reported >= _termination_count(new)


def _termination_count(container: ContainerSummary) -> int:
    """How many attempts have ended, up to the one that `last` tells of.

    One that waits to be started again has not been counted as a restart yet.
    """
    is_waiting = container.state is not None and container.state.is_waiting
    return container.restarts + (1 if is_waiting and container.last_state is not None else 0)


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
