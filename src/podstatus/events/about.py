"""What an event is about: references to pods, containers and nodes, as the kubelet makes them.

Upstream: GenerateContainerRef, pkg/kubelet/container/ref.go, and nodeRef, pkg/kubelet/kubelet.go
v1.36.4; GetReference, client-go v0.36.4, tools/reference/ref.go.
"""

from msgspec import structs

from podstatus.kube.objects.meta import ObjectReference
from podstatus.kube.objects.pod import Pod


def about_pod(pod: Pod) -> ObjectReference:
    """The pod. Of a static pod its own UID is named, by which `kubectl describe` looks for it."""
    return ObjectReference(
        kind="Pod",
        api_version="v1",
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        resource_version=pod.metadata.resource_version,
    )


def about_container(pod: Pod, container_name: str) -> ObjectReference:
    """A container of the pod, by where the spec has it; the pod if the spec has it nowhere.

    Upstream says nothing at all of a container that is not in the spec.
    """
    return structs.replace(about_pod(pod), field_path=_field_path(pod, container_name))


def about_node(name: str) -> ObjectReference:
    """The node, with its name in the place of the UID, as kubelets have long done.

    The one of v1.36.4 leaves the UID out. But `kubectl describe node` asks for events with the UID
    of the node and for those with its name there, and does not find what has neither.
    """
    return ObjectReference(kind="Node", api_version="v1", name=name, uid=name)


def _field_path(pod: Pod, container_name: str) -> str:
    spec = pod.spec
    for place, containers in (
        ("containers", spec.containers),
        ("initContainers", spec.init_containers),
        ("ephemeralContainers", spec.ephemeral_containers),
    ):
        for container in containers or ():
            if container.name == container_name:
                return f"spec.{place}{{{container_name}}}"
    return ""
