"""The transitions between two summaries of a pod, in the order of `status_transitions`.

A summary does not have the time of a termination, so equal terminations are distinguished by the
restart count.
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
    """Return the transitions, causes before effects: containers, phase, conditions."""
    transitions = list(_containers(() if old is None else old.containers, new.containers))
    before = "" if old is None else old.phase
    if before != new.phase:
        transitions.append(
            Transition(
                kind=PHASE,
                before=before,
                after=new.phase,
                reason=new.reason,
                message=new.message,
            )
        )
    transitions.extend(condition_transitions(() if old is None else old.conditions, new.conditions))
    return transitions


def _containers(
    before: tuple[ContainerSummary, ...], after: tuple[ContainerSummary, ...]
) -> Iterator[Transition]:
    previous = {container.name: container for container in before}
    for container in after:
        old = previous.get(container.name) or ContainerSummary(name=container.name)
        if old != container:
            yield from _container(old, container)


def _container(old: ContainerSummary, new: ContainerSummary) -> Iterator[Transition]:
    before, last = _brief(old.state), new.last_state
    if last is not None and last.is_terminated and not _already_reported(old, new):
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


def _already_reported(old: ContainerSummary, new: ContainerSummary) -> bool:
    """True if the termination in `last_state` was reported before."""
    is_over = old.state is not None and old.state.is_terminated
    reported = old.restarts + 1 if is_over else _termination_count(old)
    return reported >= _termination_count(new)


def _termination_count(container: ContainerSummary) -> int:
    """Return the number of terminations, up to the one in `last_state`.

    A container in back-off is not counted as a restart yet.
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
