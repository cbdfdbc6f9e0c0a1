"""The message of an eviction, and the annotations of its event.

Upstream: evictionMessage, pkg/kubelet/eviction/helpers.go v1.36.4.
"""

from collections.abc import Iterable

import msgspec

from podstatus.eviction.decide.model import (
    EPHEMERAL_STORAGE,
    MEMORY,
    RESOURCE_BY_SIGNAL,
    ContainerResourceUsage,
    EvictionThreshold,
    Observation,
    PodResourceUsage,
)
from podstatus.eviction.decide.pressure import available_quantity, threshold_quantity
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.kube.pod_resources import is_pod_level_resources_set
from podstatus.kube.scalars.quantity import Quantity

REASON = "Evicted"
"""Reason in the pod's status and of the event."""
THRESHOLD_MET = "EvictionThresholdMet"
"""Reason of the Node's event when a resource is to be reclaimed."""

OFFENDING_CONTAINERS = "offending_containers"
OFFENDING_CONTAINERS_USAGE = "offending_containers_usage"
OFFENDING_POD = "offending_pod"
OFFENDING_POD_USAGE = "offending_pod_usage"
STARVED_RESOURCE = "starved_resource"

_ZERO = Quantity("0")


class _Offender(msgspec.Struct, frozen=True):
    """A pod or container and its usage, which exceeds its request."""

    name: str
    usage: str
    request: str

    def text(self, kind: str, resource: str) -> str:
        return (
            f"{kind} {self.name} was using {self.usage}, request is {self.request}, "
            f"has larger consumption of {resource}. "
        )


def eviction_message(
    pod: Pod,
    usage: PodResourceUsage | None,
    threshold: EvictionThreshold,
    observed: Observation,
) -> tuple[str, dict[str, str]]:
    """Return the message and the annotations; there are none for a pod without usage."""
    resource = RESOURCE_BY_SIGNAL[threshold.signal]
    message = f"The node was low on resource: {resource}. {_amounts(threshold, observed)}"
    if usage is None:
        return message, {}
    annotations = {}
    if (whole := _pod_offender(pod, usage, resource)) is not None:
        message += whole.text("Pod", resource)
        annotations = {OFFENDING_POD: whole.name, OFFENDING_POD_USAGE: whole.usage}
    offenders = list(_container_offenders(pod, usage, resource))
    message += "".join(offender.text("Container", resource) for offender in offenders)
    annotations[OFFENDING_CONTAINERS] = ",".join(offender.name for offender in offenders)
    annotations[OFFENDING_CONTAINERS_USAGE] = ",".join(offender.usage for offender in offenders)
    annotations[STARVED_RESOURCE] = resource
    return message, annotations


def _amounts(threshold: EvictionThreshold, observed: Observation) -> str:
    quantity = threshold_quantity(threshold.value, observed.capacity).canonical
    available = available_quantity(threshold.signal, observed).canonical
    return f"Threshold quantity: {quantity}, available: {available}. "


def _pod_offender(pod: Pod, usage: PodResourceUsage, resource: str) -> _Offender | None:
    """The pod, if it has a memory request at pod level, even if it uses less."""
    requests = {} if pod.spec.resources is None else pod.spec.resources.requests or {}
    if resource != MEMORY or resource not in requests or not is_pod_level_resources_set(pod.spec):
        return None
    if usage.memory_working_set_bytes is None:
        return None
    used = Quantity.of(usage.memory_working_set_bytes, "BinarySI")
    return _Offender(pod.name, used.canonical, requests[resource].canonical)


def _container_offenders(pod: Pod, usage: PodResourceUsage, resource: str) -> Iterable[_Offender]:
    containers = _by_name(pod)
    for measured in usage.containers:
        container, used = containers.get(measured.name), _used_bytes(measured, resource)
        if container is None or used is None:
            continue
        request = (container.resources.requests or {}).get(resource, _ZERO)
        amount = Quantity.of(used, "BinarySI")
        if amount.compare(request) > 0:
            yield _Offender(measured.name, amount.canonical, request.canonical)


def _by_name(pod: Pod) -> dict[str, Container]:
    """Regular and init containers; ephemeral ones cannot request anything."""
    containers = (*(pod.spec.containers or ()), *(pod.spec.init_containers or ()))
    return {container.name: container for container in reversed(containers)}


def _used_bytes(measured: ContainerResourceUsage, resource: str) -> int | None:
    if resource == MEMORY:
        return measured.memory_working_set_bytes
    if resource != EPHEMERAL_STORAGE or measured.rootfs is None or measured.logs is None:
        return None
    if measured.rootfs.used_bytes is None or measured.logs.used_bytes is None:
        return None
    return measured.rootfs.used_bytes + measured.logs.used_bytes
