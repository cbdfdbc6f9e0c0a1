"""The transitions between two summaries of a pod, in the order of `status_transitions`.

A summary does not have the ID of a container, so equal terminations are distinguished by the
restart count.
"""

from collections.abc import Iterator

from podstatus.observe.summary.pod import ContainerSummary, PodSummary
from podstatus.observe.transitions.compare_statuses import (
    Transition,
    condition_transitions,
    container_transitions,
    phase_transitions,
)


def summary_transitions(old: PodSummary | None, new: PodSummary) -> list[Transition]:
    """Return the transitions, causes before effects: containers, phase, conditions."""
    return [
        *_containers(() if old is None else old.containers, new.containers),
        *phase_transitions("" if old is None else old.phase, new),
        *condition_transitions(() if old is None else old.conditions, new.conditions),
    ]


def _containers(
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
