"""References to pods, containers and nodes, and the Event made from an occurrence.

Upstream: GenerateContainerRef, pkg/kubelet/container/ref.go, and nodeRef, pkg/kubelet/kubelet.go
v1.36.4; GetReference, tools/reference/ref.go, makeEvent and generateEvent, tools/record/event.go,
and GenerateEventName, tools/record/util/util.go, client-go v0.36.4.
"""

import re
import uuid

import msgspec
from msgspec import structs

from podstatus.kube.objects.event import Event, EventSource
from podstatus.kube.objects.meta import ObjectMeta, ObjectReference
from podstatus.kube.objects.pod import Pod
from podstatus.kube.scalars.time import Time


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


DEFAULT_NAMESPACE = "default"
"""Namespace of events about cluster-scoped objects, such as nodes."""
MAX_NAME_LENGTH = 253
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")


class PendingEvent(msgspec.Struct, frozen=True):
    """An event that was recorded but not yet composed."""

    involved_object: ObjectReference
    type: str
    reason: str
    message: str
    at: int
    """Nanoseconds since the Unix epoch; unique within a recorder."""


def new_event(pending: PendingEvent, source: EventSource) -> Event:
    """Return the event of a first occurrence, with a count of one."""
    about = pending.involved_object
    time = Time.from_unix_nanos(pending.at)
    return Event(
        kind="Event",
        api_version="v1",
        metadata=ObjectMeta(
            name=event_name(about.name, pending.at),
            namespace=about.namespace or DEFAULT_NAMESPACE,
        ),
        involved_object=about,
        reason=pending.reason,
        message=pending.message,
        source=source,
        first_timestamp=time,
        last_timestamp=time,
        count=1,
        type=pending.type,
        reporting_component=source.component,
        reporting_instance=source.host,
    )


def event_name(name: str, at: int) -> str:
    """Return `<object name>.<hex time>`, or a UUID derived from it if that is no valid name.

    The name of the object may already be so long that the suffix does not fit.
    """
    candidate = f"{name}.{at:x}"
    if len(candidate) <= MAX_NAME_LENGTH and _NAME.fullmatch(candidate):
        return candidate
    return str(uuid.uuid5(uuid.NAMESPACE_URL, candidate))
