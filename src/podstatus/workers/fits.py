"""Whether a node has room for a pod beside the others.

Cpu counts in thousandths, all else in whole units, as in the messages. What a pod may use now
counts, not what its status says of a resize: give pods with their allocation.

Upstream: fitsRequest, pkg/scheduler/framework/plugins/noderesources/fit.go v1.36.4;
removeMissingExtendedResources, pkg/kubelet/lifecycle/predicate.go.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from podstatus.kube.node import Node
from podstatus.kube.pod_resources import pod_requests
from podstatus.kube.pod_spec import PodSpec
from podstatus.kube.quantity import Quantity, QuantityError

PODS = "pods"
_ORDER = ("cpu", "memory", "ephemeral-storage")
_NANO = 10**9
_MOST = 2**63 - 1


class Shortage(msgspec.Struct, frozen=True, kw_only=True):
    """A resource of which the node has not enough."""

    resource: str
    requested: int
    used: int
    capacity: int

    @property
    def message(self) -> str:
        """In upstream's words."""
        return (
            f"Node didn't have enough resource: {self.resource}, requested: {self.requested}, "
            f"used: {self.used}, capacity: {self.capacity}"
        )


def shortages(
    spec: PodSpec, *, node: Node, others: Iterable[PodSpec], max_pods: int
) -> list[Shortage]:
    """What is missing: pods first, then cpu, memory, ephemeral storage, and the rest by name.

    An extended resource that the node does not have at all is somebody else's business: the
    cluster may hand it out, and the node does not ask for it.
    """
    capacity = _amounts(node.status.allocatable or {})
    used: Counter[str] = Counter()
    count = 0
    for other in others:
        used.update(_amounts(pod_requests(other)))
        count += 1
    requested = _amounts(pod_requests(spec))
    looked_at = [n for n in sorted(requested, key=_place) if n in capacity or not is_extended(n)]
    short = [
        _shortage(PODS, 1, count, max_pods),
        *(_shortage(n, requested[n], used[n], capacity.get(n, 0)) for n in looked_at),
    ]
    return [shortage for shortage in short if shortage is not None]


def most_pods(node: Node, otherwise: int) -> int:
    """How many pods the node says that it takes; so many, if it does not say."""
    shown = (node.status.allocatable or {}).get(PODS)
    return otherwise if shown is None else _amount(PODS, shown)


def is_extended(resource: str) -> bool:
    """Whether a resource is neither Kubernetes' own nor a quota's.

    Upstream: IsExtendedResourceName, pkg/apis/core/v1/helper/helpers.go v1.36.4.
    """
    return (
        "/" in resource
        and "kubernetes.io/" not in resource
        and not resource.startswith("requests.")
    )


def _is_counted(resource: str) -> bool:
    """Whether nodes run out of it; upstream does not look at any other name."""
    return (
        resource in _ORDER
        or is_extended(resource)
        or "kubernetes.io/" in resource
        or resource.startswith(("hugepages-", "attachable-volumes-"))
    )


def _place(resource: str) -> tuple[int, str]:
    return (_ORDER.index(resource) if resource in _ORDER else len(_ORDER), resource)


def _amounts(quantities: Mapping[str, Quantity]) -> dict[str, int]:
    return {name: _amount(name, q) for name, q in quantities.items() if _is_counted(name)}


def _amount(resource: str, quantity: Quantity) -> int:
    """Rounded up. What no int64 holds is more than any node has, and stays that."""
    unit = _NANO // 1000 if resource == "cpu" else _NANO
    try:
        return min(_MOST, -(-quantity.nanos // unit))
    except QuantityError:
        return _MOST


def _shortage(resource: str, requested: int, used: int, capacity: int) -> Shortage | None:
    if requested <= 0 or requested <= capacity - used:
        return None
    return Shortage(resource=resource, requested=requested, used=used, capacity=capacity)
