"""A pod with the resources that the node has granted to it, instead of those it asks for.

A resize changes the spec first; until it is granted, and after a restart of the agent, the
allocation counts.

Upstream: updatePodFromAllocation, allocation/allocation_manager.go v1.36.4.
"""

from collections.abc import Callable

from msgspec import structs

from podstatus.kube.containers import Container
from podstatus.kube.equality import semantic_equal
from podstatus.kube.pod import Pod, PodUID
from podstatus.kube.resources import ResourceRequirements

LookUp = Callable[[PodUID, str], ResourceRequirements | None]
Containers = tuple[Container, ...]


def with_allocation(pod: Pod, look_up: LookUp) -> Pod:
    """The pod with what `look_up` knows of its containers; the pod itself if nothing differs.

    A container that has no allocation keeps what it asks for. Ephemeral ones never have one.
    """
    spec = pod.spec
    containers = _allocated(pod.uid, spec.containers, look_up)
    init = _allocated(pod.uid, spec.init_containers, look_up)
    if containers is spec.containers and init is spec.init_containers:
        return pod
    spec = structs.replace(spec, containers=containers, init_containers=init)
    return structs.replace(pod, spec=spec)


def _allocated(uid: PodUID, containers: Containers | None, look_up: LookUp) -> Containers | None:
    granted = tuple(_with_granted(c, look_up(uid, c.name)) for c in containers or ())
    changed = any(new is not old for new, old in zip(granted, containers or (), strict=True))
    return granted if changed else containers


def _with_granted(container: Container, granted: ResourceRequirements | None) -> Container:
    if granted is None or semantic_equal(granted, container.resources):
        return container
    return structs.replace(container, resources=granted)
