"""A pod with its allocated resources in place of those in its spec.

A resize changes the spec first. The allocation applies until the resize is accepted, also after a
restart of the agent.

Upstream: updatePodFromAllocation, allocation/allocation_manager.go v1.36.4.
"""

from collections.abc import Callable

from msgspec import structs

from podstatus.kube.encoding.equality import semantic_equal
from podstatus.kube.objects.allocation import PodResourceInfo
from podstatus.kube.objects.containers import Container, ResourceRequirements
from podstatus.kube.objects.pod import Pod
from podstatus.kube.scalars.quantity import Quantity

_Containers = tuple[Container, ...]
_Transform = Callable[[Container], Container]
_Quantities = dict[str, Quantity] | None


def with_allocation(pod: Pod, allocated: PodResourceInfo | None) -> Pod:
    """The pod with its allocated resources; the same object if nothing differs.

    A container without an allocation keeps its spec; ephemeral containers never have one.
    """
    if allocated is None:
        return pod
    if not semantic_equal(pod.spec.resources, allocated.pod_level_resources):
        spec = structs.replace(pod.spec, resources=allocated.pod_level_resources)
        pod = structs.replace(pod, spec=spec)
    by_name = allocated.container_resources
    return _map_containers(pod, lambda c: _with_allocated(c, by_name.get(c.name)))


def with_larger_requests(pod: Pod, other: PodResourceInfo | None) -> Pod:
    """The pod with the larger of its own requests and `other`, container by container.

    Resources that a pod still uses count until the runtime has reduced them.
    """
    if other is None:
        return pod
    if pod.spec.resources is not None and other.pod_level_resources is not None:
        larger = _larger(pod.spec.resources, other.pod_level_resources)
        pod = structs.replace(pod, spec=structs.replace(pod.spec, resources=larger))
    by_name = other.container_resources
    return _map_containers(pod, lambda c: _with_larger(c, by_name.get(c.name)))


def _map_containers(pod: Pod, transform: _Transform) -> Pod:
    spec = pod.spec
    containers = _map_each(spec.containers, transform)
    init = _map_each(spec.init_containers, transform)
    if containers is spec.containers and init is spec.init_containers:
        return pod
    spec = structs.replace(spec, containers=containers, init_containers=init)
    return structs.replace(pod, spec=spec)


def _map_each(containers: _Containers | None, transform: _Transform) -> _Containers | None:
    mapped = tuple(transform(c) for c in containers or ())
    changed = any(new is not old for new, old in zip(mapped, containers or (), strict=True))
    return mapped if changed else containers


def _with_allocated(container: Container, allocated: ResourceRequirements | None) -> Container:
    if allocated is None or semantic_equal(allocated, container.resources):
        return container
    return structs.replace(container, resources=allocated)


def _with_larger(container: Container, other: ResourceRequirements | None) -> Container:
    if other is None or semantic_equal(other, container.resources):
        return container
    return structs.replace(container, resources=_larger(container.resources, other))


def _larger(one: ResourceRequirements, other: ResourceRequirements) -> ResourceRequirements:
    return structs.replace(one, requests=_larger_amounts(one.requests, other.requests))


def _larger_amounts(one: _Quantities, other: _Quantities) -> _Quantities:
    amounts = dict(other or {})
    for name, amount in (one or {}).items():
        if name not in amounts or amount.compare(amounts[name]) > 0:
            amounts[name] = amount
    return amounts or one
