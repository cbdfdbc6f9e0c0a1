"""What is kept of a pod takes so much of the memory, about: what may be long is looked at."""

from podstatus.kube.objects.pod_status import ContainerState, PodStatus
from podstatus.observe.summary import PodSummary

_STATUS_BYTES = 700
_CONDITION_BYTES = 250
_CONTAINER_BYTES = 1_500
_CONTAINER_SUMMARY_BYTES = 400
_LABEL_BYTES = 150
"""What objects take without the words that others choose, as measured of usual ones."""


def status_bytes(status: PodStatus) -> int:
    """Of a status."""
    size = _STATUS_BYTES + len(status.message)
    for condition in status.conditions or ():
        size += _CONDITION_BYTES + len(condition.message)
    for containers in (
        status.init_container_statuses,
        status.container_statuses,
        status.ephemeral_container_statuses,
    ):
        for found in containers or ():
            size += _CONTAINER_BYTES + _said(found.state) + _said(found.last_state)
    return size


def _said(state: ContainerState) -> int:
    if state.terminated is not None:
        return len(state.terminated.message)
    return 0 if state.waiting is None else len(state.waiting.message)


def summary_bytes(pod: PodSummary) -> int:
    """Of a summary."""
    size = _STATUS_BYTES + len(pod.message) + _LABEL_BYTES * len(pod.labels)
    for condition in pod.conditions:
        size += _CONDITION_BYTES + len(condition.message)
    for container in pod.containers:
        size += _CONTAINER_SUMMARY_BYTES + len(container.message)
    return size
