"""Requests and limits of a pod as a whole, computed from its spec.

Regular containers and sidecars run concurrently, so theirs are added up. Init containers run one
after the other, each beside the sidecars started before it, so the maximum of them counts.
Pod-level resources for cpu, memory and huge pages override the result.

Upstream: PodRequests and PodLimits, component-helpers v0.36.4, resource/helpers.go.
"""

from collections.abc import Callable, Mapping

from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.restart_policy import is_restartable_init_container
from podstatus.kube.scalars.quantity import Quantity

ResourceList = Mapping[str, Quantity]
_ResourceSelector = Callable[[ResourceRequirements], ResourceList | None]
_MutableResourceList = dict[str, Quantity]
_ZERO = Quantity("0")


def pod_requests(spec: PodSpec) -> dict[str, Quantity]:
    """Return the total requests of the pod, including its overhead."""
    total = _aggregate_containers(spec, _requests) | _pod_level(spec, _requests)
    _add_resource_list(total, spec.overhead)
    return total


def pod_limits(spec: PodSpec) -> dict[str, Quantity]:
    """Return the total limits of the pod; overhead is added to resources that have a limit."""
    total = _aggregate_containers(spec, _limits) | _pod_level(spec, _limits)
    limited = {name for name, limit in total.items() if limit.parts.value}
    _add_resource_list(
        total, {name: q for name, q in (spec.overhead or {}).items() if name in limited}
    )
    return total


def pod_request(spec: PodSpec, name: str) -> Quantity:
    """Return the request that usage is compared with: 0 unless the pod requests the resource.

    With pod-level resources, requests of containers do not count, not even for resources that have
    none at pod level. Overhead is added to a request that is not 0.

    Upstream: GetResourceRequestQuantity, pkg/api/v1/resource/helpers.go v1.36.4.
    """
    requests = _pod_level(spec, _requests)
    if not is_pod_level_resources_set(spec):
        requests = _aggregate_containers(spec, _requests)
    request = requests.get(name, _ZERO)
    overhead = (spec.overhead or {}).get(name)
    return request.plus(overhead) if overhead is not None and request.parts.value else request


def is_pod_level_resources_set(spec: PodSpec) -> bool:
    """Return whether the pod has a request or limit at pod level of a supported resource."""
    return bool(_pod_level(spec, _requests) or _pod_level(spec, _limits))


def is_pod_level_resource(name: str) -> bool:
    """Return whether this resource is supported as a pod-level resource."""
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def _requests(resources: ResourceRequirements) -> ResourceList | None:
    return resources.requests


def _limits(resources: ResourceRequirements) -> ResourceList | None:
    return resources.limits


def _aggregate_containers(spec: PodSpec, side: _ResourceSelector) -> _MutableResourceList:
    total: _MutableResourceList = {}
    for container in spec.containers or ():
        _add_resource_list(total, side(container.resources))
    sidecars: _MutableResourceList = {}
    peak: _MutableResourceList = {}
    for container in spec.init_containers or ():
        own = dict(side(container.resources) or {})
        if is_restartable_init_container(container):
            _add_resource_list(total, own)
            _add_resource_list(sidecars, own)
            # A negative request of a regular container does not lower the total.
            _max_resource_list(peak, sidecars)
        else:
            _add_resource_list(own, sidecars)
            _max_resource_list(peak, own)
    _max_resource_list(total, peak)
    return total


def _pod_level(spec: PodSpec, side: _ResourceSelector) -> _MutableResourceList:
    listed = None if spec.resources is None else side(spec.resources)
    return {name: q for name, q in (listed or {}).items() if is_pod_level_resource(name)}


def _add_resource_list(total: _MutableResourceList, more: ResourceList | None) -> None:
    for name, quantity in (more or {}).items():
        total[name] = total[name].plus(quantity) if name in total else quantity


def _max_resource_list(maximum: _MutableResourceList, candidate: ResourceList) -> None:
    for name, quantity in candidate.items():
        if name not in maximum or quantity.compare(maximum[name]) > 0:
            maximum[name] = quantity
