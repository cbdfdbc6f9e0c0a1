"""How much of its node a pod is promised: its quality-of-service class.

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
    """The class that the pod was given, else the one its spec amounts to."""
    return pod.status.qos_class or compute_pod_qos(pod.spec)


def compute_pod_qos(spec: PodSpec) -> str:
    """Guaranteed if requests are limits throughout, BestEffort if there are none of either.

    Resources of the pod as a whole are looked at instead of its containers', even if empty.
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
    """What is asked for of each resource that counts, where that is more than nothing."""
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
