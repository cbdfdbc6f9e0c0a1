"""The cpu and memory in a status: actuated resources as far as known, otherwise allocated ones.

A resize changes the spec first, then the allocation, and the running containers last. The pod
passed in has the allocated resources; the actuated ones come from the runtime or, if it does not
report them, from the previous status.

Upstream: convertContainerStatusResources and convertToAPIPodLevelResourcesStatus,
kubelet_pods.go v1.36.4.
"""

from msgspec import structs

from podstatus.kube.objects.containers import Container, ResourceRequirements
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import ContainerStatus, PodStatus
from podstatus.kube.objects.runtime_facts import (
    ContainerFacts,
    ContainerRunState,
    PodFacts,
    ResourceFacts,
)
from podstatus.kube.pod_resources import ResourceList, pod_limits, pod_requests
from podstatus.kube.scalars.quantity import Quantity

# Minimums of the kernel: a quota of 10 ms per second, and 2 of 1024 shares.
_MIN_CPU_LIMIT_MILLI = 10
_MIN_CPU_REQUEST_MILLI = 2

_NO_RESOURCES = ResourceRequirements()


def container_resources(
    container: Container, attempt: ContainerFacts, old: ContainerStatus | None
) -> ResourceRequirements:
    """Return the allocated resources, corrected by the runtime's while the container runs.

    Requests or limits that the spec does not have are omitted, whatever the runtime reports.
    """
    allocated = container.resources
    if attempt.state is not ContainerRunState.RUNNING:
        return allocated
    old_resources = _NO_RESOURCES
    if old is not None and old.state.running is not None and old.container_id == attempt.id:
        old_resources = old.resources or _NO_RESOURCES
    return _actuated_resources(allocated, attempt.resources or ResourceFacts(), old_resources)


def pod_resources(pod: Pod, facts: PodFacts, old_status: PodStatus) -> ResourceRequirements:
    """Return the pod-level resources: allocated, corrected by the runtime's while it runs."""
    allocated = pod.spec.resources or _NO_RESOURCES
    requests = pod_requests(pod.spec)
    if pod.status.phase != "Running":
        return structs.replace(allocated, requests=requests, limits=pod_limits(pod.spec))
    own_requests = dict(allocated.requests or {})
    if "memory" in requests:
        own_requests.setdefault("memory", requests["memory"])
    allocated = structs.replace(allocated, requests=own_requests, limits=allocated.limits or {})
    # The memory request of a pod is not in its cgroup, so it cannot be read back.
    reported = structs.replace(facts.resources or ResourceFacts(), memory_request=None)
    old_resources = old_status.resources if old_status.phase == "Running" else None
    return _actuated_resources(allocated, reported, old_resources or _NO_RESOURCES)


def _actuated_resources(
    allocated: ResourceRequirements, reported: ResourceFacts, old: ResourceRequirements
) -> ResourceRequirements:
    return structs.replace(
        allocated,
        limits=_with_reported(
            allocated.limits,
            old.limits or {},
            cpu=reported.cpu_limit,
            memory=reported.memory_limit,
            min_cpu=_MIN_CPU_LIMIT_MILLI,
        ),
        requests=_with_reported(
            allocated.requests,
            old.requests or {},
            cpu=reported.cpu_request,
            memory=reported.memory_request,
            min_cpu=_MIN_CPU_REQUEST_MILLI,
        ),
    )


def _with_reported(
    allocated: ResourceList | None,
    old: ResourceList,
    *,
    cpu: Quantity | None,
    memory: Quantity | None,
    min_cpu: int,
) -> dict[str, Quantity] | None:
    if allocated is None:
        return None
    corrected = dict(allocated)
    if cpu is None:
        _set_if_present(corrected, "cpu", old.get("cpu"))
    elif any(q.milli_value > min_cpu for q in (cpu, allocated.get("cpu")) if q is not None):
        corrected["cpu"] = cpu
    _set_if_present(corrected, "memory", old.get("memory") if memory is None else memory)
    return corrected


def _set_if_present(resources: dict[str, Quantity], name: str, quantity: Quantity | None) -> None:
    if quantity is not None:
        resources[name] = quantity
