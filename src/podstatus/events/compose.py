"""What happened, and the event that says so.

Upstream: makeEvent and generateEvent, client-go v0.36.4, tools/record/event.go;
GenerateEventName, tools/record/util/util.go.
"""

import re
import uuid

import msgspec

from podstatus.kube.objects.event import Event, EventSource
from podstatus.kube.objects.meta import ObjectMeta, ObjectReference
from podstatus.kube.scalars.time import Time

DEFAULT_NAMESPACE = "default"
"""Where events about objects are that are in no namespace, such as nodes."""
LONGEST_NAME = 253
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")


class Occurrence(msgspec.Struct, frozen=True):
    """Something that happened."""

    about: ObjectReference
    type: str
    reason: str
    message: str
    at: int
    """Nanoseconds since the Unix epoch; no two of one recorder have the same."""


def event_of(occurrence: Occurrence, source: EventSource) -> Event:
    """The event as it is when it happened for the first time."""
    about = occurrence.about
    time = Time.from_unix_nanos(occurrence.at)
    return Event(
        kind="Event",
        api_version="v1",
        metadata=ObjectMeta(
            name=event_name(about.name, occurrence.at),
            namespace=about.namespace or DEFAULT_NAMESPACE,
        ),
        involved_object=about,
        reason=occurrence.reason,
        message=occurrence.message,
        source=source,
        first_timestamp=time,
        last_timestamp=time,
        count=1,
        type=occurrence.type,
        reporting_component=source.component,
        reporting_instance=source.host,
    )


def event_name(name: str, at: int) -> str:
    """The object's name and the time; a UUID made of them where that is no name of an event.

    Names of pods may be so long already that nothing can follow.
    """
    told = f"{name}.{at:x}"
    if len(told) <= LONGEST_NAME and _NAME.fullmatch(told):
        return told
    return str(uuid.uuid5(uuid.NAMESPACE_URL, told))
