"""Choose between a status restored from the outbox and the API server's status of a live pod.

The restored status is newer, unless it was delivered and only its removal from the outbox failed.
The progress of the containers shows which one is newer.
"""

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


def _progress(status: ContainerStatus) -> tuple[int, int]:
    """Return a sort key: the restart count, then not started < running < terminated."""
    if status.state.terminated is not None:
        return status.restart_count, 2
    if status.state.running is not None:
        return status.restart_count, 1
    # Waiting for a restart counts as terminated; waiting for the first start does not.
    return status.restart_count, 3 if status.last_state.terminated is not None else 0
