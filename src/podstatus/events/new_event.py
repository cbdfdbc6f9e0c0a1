"""The Event made from an occurrence.

Upstream: makeEvent and generateEvent, tools/record/event.go, and GenerateEventName,
tools/record/util/util.go, client-go v0.36.4.
"""

import re
import uuid
from collections.abc import Mapping

import msgspec

from podstatus.kube.objects.event import Event, EventSource
from podstatus.kube.objects.meta import ObjectMeta, ObjectReference
from podstatus.kube.scalars.time import Time

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
    annotations: Mapping[str, str] | None = None


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
            annotations=dict(pending.annotations) if pending.annotations else None,
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
