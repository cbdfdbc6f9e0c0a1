"""Pods as `v1.PodList`, and the container attempt that a request selects.

Upstream: encodePods, pkg/kubelet/server/server.go; GetRunningPods and validateContainerLogStatus,
kubelet_pods.go; v1.36.4. Error messages are upstream's.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from podstatus.kube.encoding.codec import to_document
from podstatus.kube.encoding.go_json import encode_document
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.meta import ObjectMeta
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.pod_status import ContainerState, ContainerStatus
from podstatus.kube.objects.runtime_facts import ContainerRunState
from podstatus.runtime.port import RuntimePod
from podstatus.web.errors import HttpError, bad_request, not_found


def pod_list(pods: Iterable[Pod]) -> bytes:
    """Encode pods as a `v1.PodList`."""
    items: list[dict[str, Any]] = [to_document(pod) for pod in pods]
    for item in items:
        # The items of a typed list have no kind and apiVersion.
        item.pop("kind", None)
        item.pop("apiVersion", None)
    document: dict[str, Any] = {
        "kind": "PodList",
        "apiVersion": "v1",
        "metadata": {},
        "items": items or None,
    }
    return encode_document(document)


def running_pods(pods: Sequence[RuntimePod]) -> list[Pod]:
    """The pods with running containers, with the fields that the runtime knows."""
    return [running for pod in pods if (running := _running(pod)).spec.containers]


def _running(pod: RuntimePod) -> Pod:
    containers = tuple(
        Container(name=facts.name, image=facts.image)
        for facts in pod.facts.containers
        if facts.state is ContainerRunState.RUNNING
    )
    return Pod(
        metadata=ObjectMeta(name=pod.name, namespace=pod.namespace, uid=pod.uid),
        spec=PodSpec(containers=containers),
    )


def running_container(pods: Sequence[RuntimePod], uid: str, container: str) -> str | None:
    """The container ID of the running attempt; None if there is none."""
    for pod in pods:
        if pod.uid != uid:
            continue
        for facts in pod.facts.containers:
            if facts.name == container and facts.state is ContainerRunState.RUNNING:
                return facts.id
    return None


_WAITING = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}
"""Upstream's texts for these reasons."""


def check_container(pod: Pod, container: str) -> None:
    """Raise HttpError unless the pod's spec has the container."""
    if _spec(pod, container) is None:
        raise not_found(f'container "{container}" not found in pod "{pod.name}"')


def has_tty(pod: Pod, container: str) -> bool:
    """Whether the container's spec has `tty: true`."""
    spec = _spec(pod, container)
    return spec is not None and spec.tty


def _spec(pod: Pod, container: str) -> Container | None:
    spec = pod.spec
    kinds = (spec.containers, spec.init_containers, spec.ephemeral_containers)
    matches = (each for kind in kinds for each in kind or () if each.name == container)
    return next(matches, None)


def container_with_logs(pod: Pod, container: str, *, previous: bool) -> str:
    """The container ID of the attempt whose log to read. Raises HttpError."""
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
    is_terminated = status.state.terminated is not None
    if is_terminated or status.last_state.terminated is not None:
        attempt = _terminated_id(status.state) or last
        if not attempt:
            raise bad_request(f"{where} is terminated")
        return attempt
    raise _not_started(where, status.state)


def _status(pod: Pod, container: str) -> ContainerStatus | None:
    status = pod.status
    kinds = (
        status.container_statuses,
        status.init_container_statuses,
        status.ephemeral_container_statuses,
    )
    matches = (each for kind in kinds for each in kind or () if each.name == container)
    return next(matches, None)


def _terminated_id(state: ContainerState) -> str:
    return "" if state.terminated is None else state.terminated.container_id


def _not_started(where: str, state: ContainerState) -> HttpError:
    if state.waiting is None:
        return bad_request(f"{where} is waiting to start - no logs yet")
    reason = state.waiting.reason
    return bad_request(f"{where} is waiting to start: {_WAITING.get(reason, reason)}")
