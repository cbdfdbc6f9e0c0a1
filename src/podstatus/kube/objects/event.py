"""Wire types of `v1.Event`: what happened to an object, and how often."""

from msgspec import field

from podstatus.kube.encoding.wire_struct import Wire
from podstatus.kube.objects.cluster import KubeObject
from podstatus.kube.objects.meta import ObjectReference
from podstatus.kube.scalars.time import MicroTime, Time

__all__ = ["NORMAL", "WARNING", "Event", "EventSeries", "EventSource", "ObjectReference"]

NORMAL = "Normal"
WARNING = "Warning"


class EventSource(Wire, frozen=True, kw_only=True):
    component: str = ""
    host: str = ""


class EventSeries(Wire, frozen=True, kw_only=True):
    count: int = 0
    last_observed_time: MicroTime = field(default_factory=MicroTime)


class Event(KubeObject, frozen=True, kw_only=True):
    involved_object: ObjectReference = field(default_factory=ObjectReference)
    reason: str = ""
    message: str = ""
    source: EventSource = field(default_factory=EventSource)
    first_timestamp: Time = field(default_factory=Time)
    last_timestamp: Time = field(default_factory=Time)
    count: int = 0
    type: str = ""
    event_time: MicroTime = field(default_factory=MicroTime)
    series: EventSeries | None = None
    action: str = ""
    related: ObjectReference | None = None
    reporting_component: str = field(default_factory=str)
    reporting_instance: str = field(default_factory=str)
