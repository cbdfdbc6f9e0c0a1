"""Choose between a status restored from the outbox and the API server's status of a live pod.

The restored status is newer, unless it was delivered and only its removal from the outbox failed.
The progress of the containers shows which one is newer.
"""

from enum import IntEnum, auto

from podstatus.kube.objects.pod import is_terminal_phase
from podstatus.kube.objects.pod_status import ContainerStatus, PodStatus


def has_terminated_container(status: PodStatus) -> bool:
    """Whether any container has terminated, now or before its last restart."""
    return any(
        container.state.terminated is not None or container.last_state.terminated is not None
        for container in _containers(status)
    )


def newer_status(restored: PodStatus | None, observed: PodStatus) -> PodStatus:
    """Return the newer of the restored status and the one the API server shows."""
    if restored is None or is_terminal_phase(observed.phase):
        return observed
    progress = {container.name: _progress(container) for container in _containers(restored)}
    for container in _containers(observed):
        name = container.name
        if name not in progress or progress[name] < _progress(container):
            return observed
    return restored


def _containers(status: PodStatus) -> tuple[ContainerStatus, ...]:
    return (
        *(status.init_container_statuses or ()),
        *(status.container_statuses or ()),
        *(status.ephemeral_container_statuses or ()),
    )


class _Progress(IntEnum):
    """The progress of an attempt, in order."""

    WAITING = auto()
    RUNNING = auto()
    TERMINATED = auto()
    WAITING_FOR_RESTART = auto()


def _progress(status: ContainerStatus) -> tuple[int, _Progress]:
    """Return a sort key: the restart count, then the progress of the attempt."""
    if status.state.terminated is not None:
        return status.restart_count, _Progress.TERMINATED
    if status.state.running is not None:
        return status.restart_count, _Progress.RUNNING
    has_ended = status.last_state.terminated is not None
    return status.restart_count, _Progress.WAITING_FOR_RESTART if has_ended else _Progress.WAITING
