"""Compare the parts of two statuses that the kubelet owns.

Upstream: isPodStatusByKubeletEqual, status_manager.go v1.36.4.
"""

from collections.abc import Callable, Iterable
from operator import attrgetter

from msgspec import structs

from podstatus.kube.conditions import (
    Conditions,
    conditions_by_kubelet,
    pod_condition_shared_by_kubelet,
)
from podstatus.kube.encoding.equality import semantic_equal
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod_status import PodCondition, PodStatus


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


_ConditionValue = tuple[str, str, str, str]
_condition_value: Callable[[PodCondition], _ConditionValue] = attrgetter(
    "type", "status", "reason", "message"
)


def _our_conditions_equal(
    old: Conditions | None, new: Conditions | None, gates: FeatureGates
) -> bool:
    if old == new:
        return True
    before, after = [*map(_condition_value, old or ())], [*map(_condition_value, new or ())]
    return before == after or _kubelet_conditions(before, gates) == _kubelet_conditions(
        after, gates
    )


def _kubelet_conditions(
    values: Iterable[_ConditionValue], gates: FeatureGates
) -> dict[str, _ConditionValue]:
    """Return the kubelet's conditions by type; among duplicates of a type, the last wins."""
    ours = conditions_by_kubelet(gates)
    return {
        value[0]: value
        for value in values
        if value[0] in ours or pod_condition_shared_by_kubelet(value[0])
    }
