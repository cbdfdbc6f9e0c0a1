"""Plan the runtime changes that apply a pod's allocation.

Upstream: computePodResizeAction and IsPodResizeInProgress, kuberuntime_manager.go v1.36.4.
"""

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import structs

from podstatus.kube.by_name import first_by_name
from podstatus.kube.objects.allocation import PodResourceInfo
from podstatus.kube.objects.containers import Container, ResourceRequirements
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.runtime_facts import (
    ContainerFacts,
    ContainerRunState,
    PodFacts,
    ResourceFacts,
)
from podstatus.kube.scalars.quantity import Quantity
from podstatus.workers.admission.resource_fit import to_int

RESTART_CONTAINER = "RestartContainer"
_NO_RESOURCES = ResourceRequirements()
_ZERO = Quantity("0")
_ResourceTuple = tuple[int, int, int, int]


class ResizePlan(msgspec.Struct, frozen=True, kw_only=True):
    """Differences between allocated and actuated resources. By default none."""

    in_place: Mapping[str, str] = {}
    """Containers to resize while they run, name -> ID."""
    restart: frozenset[str] = frozenset()
    """Running containers that must restart for the resize."""
    idle: frozenset[str] = frozenset()
    """Containers that do not run: their next start uses the allocation."""
    pod_level: bool = False
    """The pod-level resources change."""

    @property
    def is_in_progress(self) -> bool:
        """Whether a running container or the pod level differs from the allocation."""
        return bool(self.in_place or self.restart or self.pod_level)


NO_RESIZE = ResizePlan()


def plan_resize(pod: Pod, actuated: PodResourceInfo | None, facts: PodFacts) -> ResizePlan:
    """Plan for a pod with its allocation. `actuated` None: equal to the allocation."""
    if actuated is None:
        return NO_RESIZE
    in_place: dict[str, str] = {}
    restart, idle = set(), set()
    for container, attempt in _differing(pod, actuated, facts):
        if attempt is None:
            idle.add(container.name)
        elif _needs_restart(pod, container, actuated):
            restart.add(container.name)
        else:
            in_place[container.name] = attempt.id
    own = _resource_tuple(pod.spec.resources or _NO_RESOURCES)
    return ResizePlan(
        in_place=in_place,
        restart=frozenset(restart),
        idle=frozenset(idle),
        pod_level=own != _resource_tuple(actuated.pod_level_resources or _NO_RESOURCES),
    )


def running_containers(pod: Pod, facts: PodFacts) -> dict[str, str]:
    """Running containers of the pod that can be resized, name -> ID."""
    by_name = first_by_name(facts.containers)
    attempts = {c.name: _running_attempt(by_name.get(c.name)) for c in resizable_containers(pod)}
    return {name: attempt.id for name, attempt in attempts.items() if attempt is not None}


def resizable_containers(pod: Pod) -> tuple[Container, ...]:
    """All containers of the pod except ephemeral ones."""
    return (*(pod.spec.init_containers or ()), *(pod.spec.containers or ()))


def with_actuated(facts: PodFacts, actuated: PodResourceInfo | None) -> PodFacts:
    """The facts, completed with actuated resources that the runtime does not report.

    Upstream: toKubeContainerStatus, kuberuntime_container.go v1.36.4.
    """
    if actuated is None:
        return facts
    containers = tuple(
        _with_actuated_resources(attempt, actuated.container_resources.get(attempt.name))
        for attempt in facts.containers
    )
    return structs.replace(facts, containers=containers)


def needs_restart(container: Container, resource: str) -> bool:
    """Whether the container's resize policy requires a restart for this resource."""
    return any(
        policy.resource_name == resource and policy.restart_policy == RESTART_CONTAINER
        for policy in container.resize_policy or ()
    )


def changed_resources(old: ResourceRequirements, new: ResourceRequirements) -> set[str]:
    """Which of cpu and memory differ, compared in millicores and bytes."""
    before, after = _resource_tuple(old), _resource_tuple(new)
    return {"cpu" for a, b in zip(before[:2], after[:2], strict=True) if a != b} | {
        "memory" for a, b in zip(before[2:], after[2:], strict=True) if a != b
    }


def with_pod_limits(
    resources: ResourceRequirements, pod_resources: ResourceRequirements | None
) -> ResourceRequirements:
    """The container's resources, with the pod-level limits where it sets none.

    Upstream: GetLimits, pkg/kubelet/util/util.go v1.36.4.
    """
    outer = (pod_resources or _NO_RESOURCES).limits
    if not outer:
        return resources
    shared = {name: outer[name] for name in ("cpu", "memory") if name in outer}
    return structs.replace(resources, limits=shared | (resources.limits or {}))


def _differing(
    pod: Pod, actuated: PodResourceInfo, facts: PodFacts
) -> Iterator[tuple[Container, ContainerFacts | None]]:
    """Containers whose actuated resources differ, with their running attempts."""
    by_name = first_by_name(facts.containers)
    for container in resizable_containers(pod):
        if _changed_resources(pod, container, actuated):
            yield container, _running_attempt(by_name.get(container.name))


def _changed_resources(pod: Pod, container: Container, actuated: PodResourceInfo) -> set[str]:
    resources = actuated.container_resources.get(container.name)
    if resources is None:
        return set()
    return changed_resources(
        with_pod_limits(resources, actuated.pod_level_resources),
        with_pod_limits(container.resources, pod.spec.resources),
    )


def _needs_restart(pod: Pod, container: Container, actuated: PodResourceInfo) -> bool:
    return any(
        needs_restart(container, name) for name in _changed_resources(pod, container, actuated)
    )


def _running_attempt(attempt: ContainerFacts | None) -> ContainerFacts | None:
    if attempt is None or not attempt.active or attempt.state is not ContainerRunState.RUNNING:
        return None
    return attempt


def _resource_tuple(resources: ResourceRequirements) -> _ResourceTuple:
    """CPU request and limit in millicores, memory request and limit in bytes."""
    requests, limits = resources.requests or {}, resources.limits or {}
    return (
        requests.get("cpu", _ZERO).milli_value,
        limits.get("cpu", _ZERO).milli_value,
        to_int("memory", requests.get("memory", _ZERO)),
        to_int("memory", limits.get("memory", _ZERO)),
    )


def _with_actuated_resources(
    attempt: ContainerFacts, actuated: ResourceRequirements | None
) -> ContainerFacts:
    if actuated is None or attempt.state is not ContainerRunState.RUNNING:
        return attempt
    reported = attempt.resources or ResourceFacts()
    requests, limits = actuated.requests or {}, actuated.limits or {}
    return structs.replace(
        attempt,
        resources=ResourceFacts(
            cpu_request=reported.cpu_request or requests.get("cpu"),
            cpu_limit=reported.cpu_limit or limits.get("cpu"),
            memory_request=reported.memory_request or requests.get("memory"),
            memory_limit=reported.memory_limit or limits.get("memory"),
        ),
    )
