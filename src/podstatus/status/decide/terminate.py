"""The final status of a pod, including containers that the runtime no longer reports.

A container that is not known to have succeeded is reported as failed. Upstream: TerminatePod,
hasPodInitialized, initializedContainers, status_manager.go v1.36.4.
"""

from collections.abc import Sequence

from msgspec import structs

from podstatus.kube.objects.pod import Pod, is_static_pod, is_terminal_phase
from podstatus.kube.objects.pod_status import (
    ContainerState,
    ContainerStateTerminated,
    ContainerStatus,
    PodStatus,
)
from podstatus.kube.restart_policy import is_restartable_init_container
from podstatus.status.decide.legal_transitions import get_container_by_index

ContainerStatuses = tuple[ContainerStatus, ...]

_STATUS_UNKNOWN = ContainerState(
    terminated=ContainerStateTerminated(
        reason="ContainerStatusUnknown",
        message="The container could not be located when the pod was terminated",
        exit_code=137,  # as if killed: its exit was not observed
    )
)


def terminate_status(pod: Pod, status: PodStatus) -> PodStatus:
    """Return the status with unknown containers as failed and a terminal phase.

    Whether the pod was initialized is read from `pod.status`, not from `status`. A static pod
    keeps its phase (kubernetes#116484).
    """
    statuses = status.container_statuses
    if has_pod_initialized(pod):
        statuses = _terminate_all(statuses)
    init = status.init_container_statuses
    started = len(initialized_containers(init))
    if init is not None:
        init = (*(_terminate_all(init[:started]) or ()), *init[started:])
    phase = status.phase
    if not is_static_pod(pod) and not is_terminal_phase(phase):
        phase = "Failed"
    return structs.replace(
        status, container_statuses=statuses, init_container_statuses=init, phase=phase
    )


def has_pod_initialized(pod: Pod) -> bool:
    """Whether there is evidence that the regular containers were allowed to start."""
    if not pod.spec.init_containers:
        return True
    for status in pod.status.container_statuses or ():
        if status.last_state.terminated is not None or status.state.waiting is None:
            return True
    statuses = pod.status.init_container_statuses
    if not statuses:
        return False
    container = get_container_by_index(pod.spec.init_containers, statuses, len(statuses) - 1)
    if container is None:
        return False
    last = statuses[-1]
    if is_restartable_init_container(container):
        return last.state.running is not None and bool(last.started)
    return _succeeded(last.last_state) or _succeeded(last.state)


def initialized_containers(statuses: Sequence[ContainerStatus] | None) -> ContainerStatuses:
    """Return the statuses without the trailing containers that never started; at least one."""
    initialized = tuple(statuses or ())
    for count in range(len(initialized), 1, -1):
        status = initialized[count - 1]
        if status.state.waiting is None or status.last_state.terminated is not None:
            return initialized[:count]
    return initialized[:1]


def _succeeded(state: ContainerState) -> bool:
    return state.terminated is not None and state.terminated.exit_code == 0


def _terminate_all(statuses: ContainerStatuses | None) -> ContainerStatuses | None:
    return statuses and tuple(
        status
        if status.state.terminated is not None
        else structs.replace(status, state=_STATUS_UNKNOWN)
        for status in statuses
    )
