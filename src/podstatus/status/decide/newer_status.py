"""What an earlier life of the node could not deliver of pods that live on.

It is newer than what the API server shows, unless it was delivered after all and only not
dropped: the server tells by how far the containers have come.
"""

from podstatus.kube.objects.pod import is_terminal_phase
from podstatus.kube.objects.pod_status import ContainerStatus, PodStatus


def has_terminated_container(status: PodStatus) -> bool:
    """Whether a container of the pod has ended, now or before its last start."""
    return any(
        found.state.terminated is not None or found.last_state.terminated is not None
        for found in _containers(status)
    )


def newer_status(restored: PodStatus | None, observed: PodStatus) -> PodStatus:
    """Of what is remembered and what the API server shows, what happened later."""
    if restored is None or is_terminal_phase(observed.phase):
        return observed
    known = {found.name: _progress(found) for found in _containers(restored)}
    for found in _containers(observed):
        if found.name not in known or known[found.name] < _progress(found):
            return observed
    return restored


def _containers(status: PodStatus) -> tuple[ContainerStatus, ...]:
    return (
        *(status.init_container_statuses or ()),
        *(status.container_statuses or ()),
        *(status.ephemeral_container_statuses or ()),
    )


def _progress(status: ContainerStatus) -> tuple[int, int]:
    """How far a container has come: so many restarts, and then not started, running, ended."""
    if status.state.terminated is not None:
        return status.restart_count, 2
    if status.state.running is not None:
        return status.restart_count, 1
    # One that waits for its next start has ended; one that waits for its first has not.
    return status.restart_count, 3 if status.last_state.terminated is not None else 0
