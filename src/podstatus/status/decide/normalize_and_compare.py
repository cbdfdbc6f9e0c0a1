"""Normalise statuses, and compare the parts of two normalised ones that the kubelet owns.

The API server stores whole seconds only, so fractions are dropped before a status is compared
with the server's copy; lists are sorted and termination messages cut.
Upstream: normalizeStatus and isPodStatusByKubeletEqual, status_manager.go v1.36.4.
"""

from heapq import heappop, heappush
from operator import attrgetter, is_

from msgspec import structs

from podstatus.kube.conditions import (
    SHARED_CONDITIONS,
    Conditions,
    conditions_by_kubelet,
)
from podstatus.kube.encoding.equality import semantic_equal
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.pod_status import (
    ContainerState,
    ContainerStatus,
    PodCondition,
    PodStatus,
)
from podstatus.kube.scalars.go_text import truncate_bytes

MAX_TERMINATION_BYTES = 12 * 1024
"""Upstream's limit on the termination messages of one pod, split evenly among its containers."""

ContainerStatuses = tuple[ContainerStatus, ...]
_by_name = attrgetter("name")


def normalize_status(pod: Pod, status: PodStatus) -> PodStatus:
    """Return the status in the form used for comparison and in the cache."""
    return normalize_conditions(normalize_containers(pod, status))


def normalize_conditions(status: PodStatus) -> PodStatus:
    """Normalise only the conditions of a status."""
    if not status.conditions:
        return status
    conditions = tuple(map(_normalize_condition, status.conditions))
    if all(map(is_, conditions, status.conditions)):
        return status
    return structs.replace(status, conditions=conditions)


def normalize_containers(pod: Pod, status: PodStatus) -> PodStatus:
    """Normalise only the container statuses and the start time."""
    start_time = status.start_time and status.start_time.truncated()
    regular, ephemeral = status.container_statuses, status.ephemeral_container_statuses
    init = status.init_container_statuses
    if regular:
        regular = sort_container_statuses(_normalize_all(pod.spec, regular))
    if init:
        init = sort_init_container_statuses(pod.spec, _normalize_all(pod.spec, init))
    if ephemeral:
        ephemeral = sort_container_statuses(_normalize_all(pod.spec, ephemeral))
    if (
        start_time is status.start_time
        and regular is status.container_statuses
        and init is status.init_container_statuses
        and ephemeral is status.ephemeral_container_statuses
    ):
        return status
    return structs.replace(
        status,
        start_time=start_time,
        container_statuses=regular,
        init_container_statuses=init,
        ephemeral_container_statuses=ephemeral,
    )


def sort_container_statuses(statuses: ContainerStatuses | None) -> ContainerStatuses | None:
    """Return the statuses sorted by container name."""
    if not statuses or len(statuses) == 1:
        return statuses
    return tuple(sorted(statuses, key=_by_name))


def sort_init_container_statuses(
    spec: PodSpec, statuses: ContainerStatuses | None
) -> ContainerStatuses | None:
    """Return the statuses in the order of the spec, followed by those that are not in the spec.

    Each status is swapped into its position, as upstream does, so that the order of the
    remaining statuses equals upstream's.
    """
    if not statuses:
        return statuses
    containers = spec.init_containers or ()
    if all(map(_has_same_name, containers, statuses)):
        return statuses
    ordered = list(statuses)
    # Heaps of indexes by name; those before `position` are out of date.
    indexes_by_name: dict[str, list[int]] = {}
    for index, status in enumerate(ordered):
        indexes_by_name.setdefault(status.name, []).append(index)
    position = 0
    for container in containers:
        indexes = indexes_by_name.get(container.name, [])
        while indexes:
            index = heappop(indexes)
            if index >= position:
                ordered[position], ordered[index] = ordered[index], ordered[position]
                heappush(indexes_by_name[ordered[index].name], index)
                position += 1
                break
    return tuple(ordered)


def _has_same_name(container: Container, status: ContainerStatus) -> bool:
    return container.name == status.name


def _message_limit(spec: PodSpec) -> int:
    """Return the maximum size of one container's termination message, in bytes."""
    containers = len(spec.containers or ()) + len(spec.init_containers or ())
    containers += len(spec.ephemeral_containers or ())
    return MAX_TERMINATION_BYTES // max(1, containers)


def _normalize_all(spec: PodSpec, statuses: ContainerStatuses) -> ContainerStatuses:
    normalized = tuple(_normalize_container(spec, status) for status in statuses)
    return statuses if all(map(is_, normalized, statuses)) else normalized


def _normalize_container(spec: PodSpec, status: ContainerStatus) -> ContainerStatus:
    state = _normalize_state(spec, status.state)
    last_state = _normalize_state(spec, status.last_state)
    if state is status.state and last_state is status.last_state:
        return status
    return structs.replace(status, state=state, last_state=last_state)


def _normalize_state(spec: PodSpec, state: ContainerState) -> ContainerState:
    running, terminated = state.running, state.terminated
    if running is not None:
        started_at = running.started_at.truncated()
        if terminated is None and started_at is running.started_at:
            return state
        running = structs.replace(running, started_at=started_at)
    if terminated is not None:
        terminated = structs.replace(
            terminated,
            started_at=terminated.started_at.truncated(),
            finished_at=terminated.finished_at.truncated(),
            message=truncate_bytes(terminated.message, _message_limit(spec)),
        )
    if running is None and terminated is None:
        return state
    return structs.replace(state, running=running, terminated=terminated)


def _normalize_condition(condition: PodCondition) -> PodCondition:
    probe_time = condition.last_probe_time and condition.last_probe_time.truncated()
    transition_time = condition.last_transition_time.truncated()
    if (
        probe_time is condition.last_probe_time
        and transition_time is condition.last_transition_time
    ):
        return condition
    return structs.replace(
        condition, last_probe_time=probe_time, last_transition_time=transition_time
    )


def is_pod_status_by_kubelet_equal(old: PodStatus, new: PodStatus, gates: FeatureGates) -> bool:
    """Whether two normalised statuses are equal in the parts that the kubelet owns.

    Conditions owned by the kubelet are compared by status, reason and message. Conditions of
    other owners and the resource claim statuses are ignored.
    """
    return _our_conditions_equal(old.conditions, new.conditions, gates) and semantic_equal(
        structs.replace(
            old,
            conditions=new.conditions,
            resource_claim_statuses=new.resource_claim_statuses,
            extended_resource_claim_status=new.extended_resource_claim_status,
            node_allocatable_resource_claim_statuses=new.node_allocatable_resource_claim_statuses,
        ),
        new,
    )


def _our_conditions_equal(
    old: Conditions | None, new: Conditions | None, gates: FeatureGates
) -> bool:
    if old == new:
        return True
    ours = conditions_by_kubelet(gates) | SHARED_CONDITIONS
    # Among duplicates of a type, the last wins.
    old_by_type, new_by_type = [
        {it.type: (it.status, it.reason, it.message) for it in conditions or () if it.type in ours}
        for conditions in (old, new)
    ]
    return old_by_type == new_by_type
