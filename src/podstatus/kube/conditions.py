"""Pod conditions: ownership, lookup and update.

Upstream: pkg/kubelet/types/pod_status.go, pkg/api/v1/pod/util.go, and
updateLastTransitionTime of status_manager.go v1.36.4.
"""

from collections.abc import Iterable, Sequence

from msgspec import structs

from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod_status import PodCondition, PodStatus
from podstatus.kube.scalars.time import Time

POD_SCHEDULED = "PodScheduled"
READY = "Ready"
INITIALIZED = "Initialized"
CONTAINERS_READY = "ContainersReady"
POD_READY_TO_START_CONTAINERS = "PodReadyToStartContainers"
POD_RESIZE_PENDING = "PodResizePending"
POD_RESIZE_IN_PROGRESS = "PodResizeInProgress"
ALL_CONTAINERS_RESTARTING = "AllContainersRestarting"
DISRUPTION_TARGET = "DisruptionTarget"

_ALWAYS_BY_KUBELET = frozenset(
    {
        POD_SCHEDULED,
        READY,
        INITIALIZED,
        CONTAINERS_READY,
        POD_RESIZE_IN_PROGRESS,
        POD_RESIZE_PENDING,
    }
)

_BY_KUBELET = {
    (False, False): _ALWAYS_BY_KUBELET,
    (True, False): _ALWAYS_BY_KUBELET | {POD_READY_TO_START_CONTAINERS},
    (False, True): _ALWAYS_BY_KUBELET | {ALL_CONTAINERS_RESTARTING},
    (True, True): _ALWAYS_BY_KUBELET | {POD_READY_TO_START_CONTAINERS, ALL_CONTAINERS_RESTARTING},
}

SHARED_CONDITIONS = frozenset({DISRUPTION_TARGET})
"""Conditions of which the node is one of several writers."""

Conditions = Sequence[PodCondition]


def pod_condition_by_kubelet(condition_type: str, gates: FeatureGates) -> bool:
    """Return whether the node owns this condition; not if the condition's feature gate is off."""
    return condition_type in conditions_by_kubelet(gates)


def conditions_by_kubelet(gates: FeatureGates) -> frozenset[str]:
    """Return the types of all conditions that the node owns."""
    return _BY_KUBELET[
        gates.pod_ready_to_start_containers_condition,
        gates.restart_all_containers_on_container_exits,
    ]


def pod_condition_shared_by_kubelet(condition_type: str) -> bool:
    """Return whether the node is one of several writers of this condition."""
    return condition_type in SHARED_CONDITIONS


def find_condition(conditions: Conditions | None, condition_type: str) -> PodCondition | None:
    """Return the first condition of this type, None if there is none."""
    for condition in conditions or ():
        if condition.type == condition_type:
            return condition
    return None


def is_condition_true(conditions: Conditions | None, condition_type: str) -> bool:
    """Return whether the first condition of this type has status True."""
    condition = find_condition(conditions, condition_type)
    return condition is not None and condition.status == "True"


def replace_or_append_pod_condition(
    conditions: Conditions | None, condition: PodCondition
) -> tuple[PodCondition, ...]:
    """Return the list with the first condition of that type replaced, or the new one appended."""
    existing = tuple(conditions or ())
    for index, other in enumerate(existing):
        if other.type == condition.type:
            return (*existing[:index], condition, *existing[index + 1 :])
    return (*existing, condition)


def update_pod_condition(
    status: PodStatus, condition: PodCondition, now: Time
) -> tuple[PodStatus, bool]:
    """Set a condition; return the new status and whether it changed.

    The transition time is `now`, or unchanged if the condition's status is.
    """
    old = find_condition(status.conditions, condition.type)
    same_status = old is not None and old.status == condition.status
    stamp = old.last_transition_time if old is not None and same_status else now
    condition = structs.replace(condition, last_transition_time=stamp)
    changed = (
        old is None
        or not same_status
        or old.reason != condition.reason
        or old.message != condition.message
        or old.last_probe_time != condition.last_probe_time
    )
    conditions = replace_or_append_pod_condition(status.conditions, condition)
    return structs.replace(status, conditions=conditions), changed


def restamp_conditions(
    status: PodStatus, old: PodStatus, condition_types: Iterable[str], now: Time
) -> PodStatus:
    """Set the transition time of the first condition of each type.

    The time is `now`, or that of the old condition if it has the same status.
    """
    remaining = set(condition_types)
    old_by_type = {condition.type: condition for condition in reversed(old.conditions or ())}
    stamped = []
    for condition in status.conditions or ():
        if condition.type in remaining:
            remaining.remove(condition.type)
            old_condition = old_by_type.get(condition.type)
            same = old_condition is not None and old_condition.status == condition.status
            stamp = (
                old_condition.last_transition_time if old_condition is not None and same else now
            )
            if condition.last_transition_time != stamp:
                condition = structs.replace(condition, last_transition_time=stamp)  # noqa: PLW2901
            if condition == old_condition:
                condition = old_condition  # noqa: PLW2901 - equal conditions share memory
        stamped.append(condition)
    return structs.replace(status, conditions=status.conditions and tuple(stamped))
