"""Whether a node has room for a pod beside the others.

What a pod may use now counts, not what its status says of a resize: give pods with their
allocation.

Upstream: fitsRequest, pkg/scheduler/framework/plugins/noderesources/fit.go v1.36.4;
removeMissingExtendedResources, pkg/kubelet/lifecycle/predicate.go.
"""

import msgspec

from podstatus.kube.objects.node import Node
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.pod_resources import pod_requests
from podstatus.workers.taken import CPU, MEMORY, STORAGE, Taken, amount, counted, is_extended

PODS = "pods"
_ORDER = (CPU, MEMORY, STORAGE)


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


def shortages(spec: PodSpec, *, node: Node, others: Taken, max_pods: int) -> list[Shortage]:
    """What is missing: pods first, then cpu, memory, ephemeral storage, and the rest by name.

    An extended resource that the node does not have at all is somebody else's business: the
    cluster may hand it out, and the node does not ask for it.
    """
    capacity = counted(node.status.allocatable or {})
    requested, used = counted(pod_requests(spec)), others.amounts
    looked_at = [n for n in sorted(requested, key=_place) if n in capacity or not is_extended(n)]
    short = [
        _shortage(PODS, 1, others.pods, max_pods),
        *(_shortage(n, requested[n], used.get(n, 0), capacity.get(n, 0)) for n in looked_at),
    ]
    return [shortage for shortage in short if shortage is not None]


def most_pods(node: Node, otherwise: int) -> int:
    """How many pods the node says that it takes; so many, if it does not say."""
    shown = (node.status.allocatable or {}).get(PODS)
    return otherwise if shown is None else amount(PODS, shown)


def _place(resource: str) -> tuple[int, str]:
    return (_ORDER.index(resource) if resource in _ORDER else len(_ORDER), resource)


def _shortage(resource: str, requested: int, used: int, capacity: int) -> Shortage | None:
    if requested <= 0 or requested <= capacity - used:
        return None
    return Shortage(resource=resource, requested=requested, used=used, capacity=capacity)
