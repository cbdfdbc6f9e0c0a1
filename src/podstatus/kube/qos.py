"""The quality-of-service class of a pod.

Upstream: pkg/apis/core/v1/helper/qos/qos.go v1.36.4.
"""

from collections.abc import Sequence

from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.pod_resources import ResourceList
from podstatus.kube.scalars.quantity import Quantity

BEST_EFFORT = "BestEffort"
BURSTABLE = "Burstable"
GUARANTEED = "Guaranteed"

_QOS_RESOURCES = ("cpu", "memory")
_ZERO = Quantity("0")


def get_pod_qos(pod: Pod) -> str:
    """Return the class in the pod's status, otherwise the one computed from the spec."""
    return pod.status.qos_class or compute_pod_qos(pod.spec)


def compute_pod_qos(spec: PodSpec) -> str:
    """Return Guaranteed if all requests equal the limits, BestEffort if there are none of either.

    Pod-level resources, even empty ones, are used instead of those of the containers.
    """
    if spec.resources is not None:
        parts: Sequence[ResourceRequirements] = (spec.resources,)
        fully_limited = _has_all_limits(spec.resources)
    else:
        parts = [c.resources for c in (*(spec.containers or ()), *(spec.init_containers or ()))]
        fully_limited = all(map(_has_all_limits, parts))
    requests = _total([part.requests for part in parts])
    limits = _total([part.limits for part in parts])
    if not requests and not limits:
        return BEST_EFFORT
    if fully_limited and _equal_lists(requests, limits):
        return GUARANTEED
    return BURSTABLE


def _has_all_limits(resources: ResourceRequirements) -> bool:
    return _total([resources.limits]).keys() == set(_QOS_RESOURCES)


def _total(lists: Sequence[ResourceList | None]) -> dict[str, Quantity]:
    """Return the totals of the resources that affect the class, without zero values."""
    total: dict[str, Quantity] = {}
    for resources in lists:
        for name in _QOS_RESOURCES if resources else ():
            quantity = (resources or {}).get(name)
            if quantity is not None and quantity.compare(_ZERO) > 0:
                total[name] = total.get(name, _ZERO).plus(quantity)
    return total


def _equal_lists(requests: dict[str, Quantity], limits: dict[str, Quantity]) -> bool:
    return requests.keys() == limits.keys() and all(
        requests[name].compare(limits[name]) == 0 for name in requests
    )
