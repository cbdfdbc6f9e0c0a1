"""Requested resources and host ports of pods, and whether a node has enough left for another.

CPU counts in thousandths, all else in whole units, as in upstream's messages. Pass pods with their
allocation: the resources that a pod may use now count, not the resize that its status reports.

Upstream: fitsRequest, pkg/scheduler/framework/plugins/noderesources/fit.go v1.36.4;
removeMissingExtendedResources, pkg/kubelet/lifecycle/predicate.go; plugins/nodeports; HostPortInfo,
kube-scheduler v0.36.4, framework/types.go.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from podstatus.kube.objects.node import Node
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.pod_resources import pod_requests
from podstatus.kube.restart_policy import is_restartable_init_container
from podstatus.kube.scalars.quantity import Quantity, QuantityError

_ANY_ADDRESS = "0.0.0.0"  # noqa: S104


class HostPort(NamedTuple):
    """A port on one address of the node, or on all (0.0.0.0)."""

    ip: str
    protocol: str
    port: int

    def conflicts_with(self, other: "HostPort") -> bool:
        """Whether both ports cannot be bound at the same time."""
        if (self.protocol, self.port) != (other.protocol, other.port):
            return False
        return self.ip == other.ip or _ANY_ADDRESS in (self.ip, other.ip)


def has_free_ports(spec: PodSpec, used: Collection[HostPort]) -> bool:
    """Whether none of the pod's host ports conflicts with a used one."""
    return not any(port.conflicts_with(other) for port in host_ports(spec) for other in used)


def host_ports(spec: PodSpec) -> Iterator[HostPort]:
    """Host ports of the regular containers and sidecars."""
    sidecars = (c for c in spec.init_containers or () if is_restartable_init_container(c))
    for container in (*sidecars, *(spec.containers or ())):
        for port in container.ports or ():
            if port.host_port > 0:
                protocol = port.protocol or "TCP"
                yield HostPort(port.host_ip or _ANY_ADDRESS, protocol, port.host_port)


CPU, MEMORY, STORAGE = "cpu", "memory", "ephemeral-storage"
_NANO = 10**9
_MAX_INT64 = 2**63 - 1


class RequestedResources(msgspec.Struct, frozen=True, kw_only=True):
    """Sum of the requests and host ports of pods."""

    pods: int = 0
    amounts: Mapping[str, int] = {}
    ports: tuple[HostPort, ...] = ()


def sum_requests(specs: Iterable[PodSpec]) -> RequestedResources:
    """Sum the requests of these pod specs. Pass specs with their allocation applied."""
    amounts: Counter[str] = Counter()
    ports: list[HostPort] = []
    count = 0
    for spec in specs:
        amounts.update(countable(pod_requests(spec)))
        ports.extend(host_ports(spec))
        count += 1
    return RequestedResources(pods=count, amounts=amounts, ports=tuple(ports))


def countable(quantities: Mapping[str, Quantity]) -> dict[str, int]:
    """Amounts of the resources that upstream checks; other names are dropped."""
    return {name: to_int(name, q) for name, q in quantities.items() if _is_countable(name)}


def to_int(resource: str, quantity: Quantity) -> int:
    """The quantity as an integer, rounded up and capped at the int64 maximum."""
    unit = _NANO // 1000 if resource == CPU else _NANO
    try:
        return min(_MAX_INT64, -(-quantity.nanos // unit))
    except QuantityError:
        return _MAX_INT64


def is_extended_resource(resource: str) -> bool:
    """Whether a resource name is neither native to Kubernetes nor a quota.

    Upstream: IsExtendedResourceName, pkg/apis/core/v1/helper/helpers.go v1.36.4.
    """
    return (
        "/" in resource
        and "kubernetes.io/" not in resource
        and not resource.startswith("requests.")
    )


def _is_countable(resource: str) -> bool:
    return (
        resource in (CPU, MEMORY, STORAGE)
        or is_extended_resource(resource)
        or "kubernetes.io/" in resource
        or resource.startswith(("hugepages-", "attachable-volumes-"))
    )


PODS = "pods"
_RESOURCE_ORDER = (CPU, MEMORY, STORAGE)


class InsufficientResource(msgspec.Struct, frozen=True, kw_only=True):
    """A resource that the node lacks."""

    resource: str
    requested: int
    used: int
    capacity: int

    @property
    def message(self) -> str:
        """The message, as upstream words it."""
        return (
            f"Node didn't have enough resource: {self.resource}, requested: {self.requested}, "
            f"used: {self.used}, capacity: {self.capacity}"
        )


def insufficient_resources(
    spec: PodSpec, *, node: Node, others: RequestedResources, max_pods: int
) -> list[InsufficientResource]:
    """The missing resources: pods first, then cpu, memory, ephemeral-storage, the rest by name.

    An extended resource that the node does not advertise is ignored: a cluster-level component may
    manage it.
    """
    capacity = countable(node.status.allocatable or {})
    requested, used = countable(pod_requests(spec)), others.amounts
    checked = [
        n for n in sorted(requested, key=_sort_key) if n in capacity or not is_extended_resource(n)
    ]
    shortages = [
        _insufficient(PODS, 1, others.pods, max_pods),
        *(_insufficient(n, requested[n], used.get(n, 0), capacity.get(n, 0)) for n in checked),
    ]
    return [shortage for shortage in shortages if shortage is not None]


def pod_capacity(node: Node, default: int) -> int:
    """The allocatable `pods` of the node; `default` if it has none."""
    allocatable = (node.status.allocatable or {}).get(PODS)
    return default if allocatable is None else to_int(PODS, allocatable)


def _sort_key(resource: str) -> tuple[int, str]:
    return (
        _RESOURCE_ORDER.index(resource) if resource in _RESOURCE_ORDER else len(_RESOURCE_ORDER),
        resource,
    )


def _insufficient(
    resource: str, requested: int, used: int, capacity: int
) -> InsufficientResource | None:
    if requested <= 0 or requested <= capacity - used:
        return None
    return InsufficientResource(
        resource=resource, requested=requested, used=used, capacity=capacity
    )
