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
    """The pod. Of a static pod its own UID is named, by which `kubectl describe` looks for it."""
    return ObjectReference(
        kind="Pod",
        api_version="v1",
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        resource_version=pod.metadata.resource_version,
    )


def container_reference(pod: Pod, container_name: str) -> ObjectReference:
    """A container of the pod, by where the spec has it; the pod if the spec has it nowhere.

    Upstream says nothing at all of a container that is not in the spec.
    """
    return structs.replace(pod_reference(pod), field_path=_field_path(pod, container_name))


def node_reference(name: str) -> ObjectReference:
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


DEFAULT_NAMESPACE = "default"
"""Where events about objects are that are in no namespace, such as nodes."""
MAX_NAME_LENGTH = 253
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")


class PendingEvent(msgspec.Struct, frozen=True):
    """Something that happened."""

    involved_object: ObjectReference
    type: str
    reason: str
    message: str
    at: int
    """Nanoseconds since the Unix epoch; no two of one recorder have the same."""


def new_event(pending: PendingEvent, source: EventSource) -> Event:
    """The event as it is when it happened for the first time."""
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
    """The object's name and the time; a UUID made of them where that is no name of an event.

    Names of pods may be so long already that nothing can follow.
    """
    told = f"{name}.{at:x}"
    if len(told) <= MAX_NAME_LENGTH and _NAME.fullmatch(told):
        return told
    return str(uuid.uuid5(uuid.NAMESPACE_URL, told))
