"""Whether two statuses say the same, as far as the node has a say.

Upstream: isPodStatusByKubeletEqual, status_manager.go v1.36.4.
"""

from operator import attrgetter

from msgspec import structs

from podstatus.kube.equality import semantic_equal
from podstatus.kube.features import FeatureGates
from podstatus.kube.pod_status import PodCondition, PodStatus
from podstatus.status.conditions import (
    Conditions,
    pod_condition_by_kubelet,
    pod_condition_shared_by_kubelet,
)


def is_pod_status_by_kubelet_equal(old: PodStatus, new: PodStatus, gates: FeatureGates) -> bool:
    """Compare two normalised statuses without what others own.

    Of our conditions only status, reason and message count; foreign conditions and the
    claim statuses do not count at all.
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


_said = attrgetter("type", "status", "reason", "message")


def _our_conditions_equal(
    old: Conditions | None, new: Conditions | None, gates: FeatureGates
) -> bool:
    return (
        old == new
        or [*map(_said, old or ())] == [*map(_said, new or ())]
        or _told(old, gates) == _told(new, gates)
    )


def _told(conditions: Conditions | None, gates: FeatureGates) -> dict[str, tuple[str, str, str]]:
    """What our conditions say; of several of one type the last one counts."""
    return {
        condition.type: (condition.status, condition.reason, condition.message)
        for condition in conditions or ()
        if _counts(condition, gates)
    }


def _counts(condition: PodCondition, gates: FeatureGates) -> bool:
    return pod_condition_by_kubelet(condition.type, gates) or pod_condition_shared_by_kubelet(
        condition.type
    )
