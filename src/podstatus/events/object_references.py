"""References to pods, containers and nodes: the involvedObject of an event.

Upstream: GenerateContainerRef, pkg/kubelet/container/ref.go, and nodeRef, pkg/kubelet/kubelet.go
v1.36.4; GetReference, tools/reference/ref.go, client-go v0.36.4.
"""

from msgspec import structs

from podstatus.kube.objects.meta import ObjectReference
from podstatus.kube.objects.pod import Pod


def pod_reference(pod: Pod) -> ObjectReference:
    """Refer to the pod; a static pod by its own UID, which `kubectl describe` searches for."""
    return ObjectReference(
        kind="Pod",
        api_version="v1",
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        resource_version=pod.metadata.resource_version,
    )


def container_reference(pod: Pod, container_name: str) -> ObjectReference:
    """Refer to a container by its field path; to the pod if the spec has no such container.

    Upstream records no event about a container that is not in the spec.
    """
    return structs.replace(pod_reference(pod), field_path=_field_path(pod, container_name))


def node_reference(name: str) -> ObjectReference:
    """Refer to the node, with its name as the UID, as kubelets before v1.36 did.

    The kubelet of v1.36.4 leaves the UID out. But `kubectl describe node` searches for events with
    the node's UID or its name in that field, and finds none that have neither.
    """
    return ObjectReference(kind="Node", api_version="v1", name=name, uid=name)


def _field_path(pod: Pod, container_name: str) -> str:
    spec = pod.spec
    for field, containers in (
        ("containers", spec.containers),
        ("initContainers", spec.init_containers),
        ("ephemeralContainers", spec.ephemeral_containers),
    ):
        for container in containers or ():
            if container.name == container_name:
                return f"spec.{field}{{{container_name}}}"
    return ""
