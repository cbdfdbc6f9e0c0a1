"""Describe decisions for the log: one short text each, built only when it is logged.

Upstream: the log lines of updateStatusInternal, SetContainerReadiness, TerminatePod and syncPod,
status_manager.go v1.36.4.
"""

from collections.abc import Iterable

from podstatus.kube.conditions import (
    conditions_by_kubelet,
    find_condition,
    pod_condition_shared_by_kubelet,
)
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod import Pod, is_mirror_pod, is_terminal_phase
from podstatus.kube.objects.pod_status import ContainerState, ContainerStatus, PodStatus
from podstatus.status.decide.foreign_writes import owned_parts
from podstatus.status.decide.readiness import find_container_status


def describe_containers(status: PodStatus) -> str:
    """Return the states of each container: `app waiting (CrashLoopBackOff), last terminated (1)`.

    Containers are separated by semicolons.
    """
    return "; ".join(map(_describe_container, _containers(status)))


def describe_difference(observed: PodStatus, cached: PodStatus, gates: FeatureGates) -> str:
    """Return which parts owned by the node differ: `Condition Ready, Field phase`."""
    before, after = owned_parts(observed, gates), owned_parts(cached, gates)
    parts = {**before, **after}
    return ", ".join(str(part) for part in parts if before.get(part) != after.get(part))


def deletion_blocker(pod: Pod, *, finished: bool) -> str | None:
    """Return why a pod whose deletion was requested cannot be deleted; None if it can.

    None also for a pod whose deletion was not requested, and for a mirror pod, which the
    mirror pod controller deletes.
    """
    if pod.metadata.deletion_timestamp is None or is_mirror_pod(pod):
        return None
    if not finished:
        return "the node has not terminated it"
    if not is_terminal_phase(pod.status.phase):
        return f"its phase is {pod.status.phase or 'empty'} on the API server"
    return None


def unmodified_reason(status: PodStatus | None, container_id: str, *, has_pod: bool = True) -> str:
    """Return why a probe result did not change a status."""
    if not has_pod:
        return "the pod was deleted"
    if status is None:
        return "the pod has no status yet"
    if not container_id or find_container_status(status, container_id) is None:
        return "the container is unknown"
    return "the container already has this value"


def foreign_conditions(pod: Pod, status: PodStatus, gates: FeatureGates) -> list[str]:
    """Return the types of conditions in `status` that other owners set and that differ in `pod`.

    A status may repeat the conditions of other owners as the pod has them.
    """
    ours = conditions_by_kubelet(gates)
    return [
        condition.type
        for condition in status.conditions or ()
        if condition.type not in ours
        and not pod_condition_shared_by_kubelet(condition.type)
        and condition != find_condition(pod.status.conditions, condition.type)
    ]


def running_containers(status: PodStatus) -> list[str]:
    """Return the names of the containers that the status shows as running."""
    return [each.name for each in _containers(status) if each.state.running is not None]


def _containers(status: PodStatus) -> Iterable[ContainerStatus]:
    yield from status.init_container_statuses or ()
    yield from status.container_statuses or ()


def _describe_container(container: ContainerStatus) -> str:
    current, last = _describe_state(container.state), _describe_state(container.last_state)
    text = f"{container.name} {current or 'unknown'}"
    return f"{text}, last {last}" if last else text


def _describe_state(state: ContainerState) -> str:
    if state.running is not None:
        return "running"
    if state.waiting is not None:
        return f"waiting ({state.waiting.reason})" if state.waiting.reason else "waiting"
    if state.terminated is not None:
        return f"terminated ({state.terminated.exit_code})"
    return ""
