"""Which attempt at a container is meant, by what is shown of the pod.

Upstream: validateContainerLogStatus, kubelet_pods.go v1.36.4; its words.
"""

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import ContainerState, ContainerStatus
from podstatus.web.refusals import Refusal, bad_request, not_found

_WAITING = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}
"""What is said in place of the reason."""


def check_container(pod: Pod, container: str) -> None:
    """Raise Refusal unless the pod's spec has it."""
    if _spec(pod, container) is None:
        raise not_found(f'container "{container}" not found in pod "{pod.name}"')


def has_terminal(pod: Pod, container: str) -> bool:
    """Whether a container of the pod's spec has a terminal."""
    found = _spec(pod, container)
    return found is not None and found.tty


def _spec(pod: Pod, container: str) -> Container | None:
    spec = pod.spec
    kinds = (spec.containers, spec.init_containers, spec.ephemeral_containers)
    found = (each for kind in kinds for each in kind or () if each.name == container)
    return next(found, None)


def container_with_logs(pod: Pod, container: str, *, previous: bool) -> str:
    """The ID of the attempt whose log is wanted. Raises Refusal."""
    where = f'container "{container}" in pod "{pod.name}"'
    status = _status(pod, container)
    if status is None:
        raise bad_request(f"{where} is not available")
    last = _terminated_id(status.last_state)
    if previous:
        if not last:
            raise bad_request(f"previous terminated {where} not found")
        return last
    if status.state.running is not None:
        return status.container_id
    has_ended = status.state.terminated is not None
    if has_ended or status.last_state.terminated is not None:
        found = _terminated_id(status.state) or last
        if not found:
            raise bad_request(f"{where} is terminated")
        return found
    raise _not_started(where, status.state)


def _status(pod: Pod, container: str) -> ContainerStatus | None:
    status = pod.status
    kinds = (
        status.container_statuses,
        status.init_container_statuses,
        status.ephemeral_container_statuses,
    )
    found = (each for kind in kinds for each in kind or () if each.name == container)
    return next(found, None)


def _terminated_id(state: ContainerState) -> str:
    return "" if state.terminated is None else state.terminated.container_id


def _not_started(where: str, state: ContainerState) -> Refusal:
    if state.waiting is None:
        return bad_request(f"{where} is waiting to start - no logs yet")
    reason = state.waiting.reason
    return bad_request(f"{where} is waiting to start: {_WAITING.get(reason, reason)}")
