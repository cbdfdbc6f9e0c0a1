"""Server-sent events: what is sent to those who watch.

    id: 1f2e3d4c-17
    event: pod
    data: {"uid":"…","namespace":"default","name":"web-0",…}

Events are `pod`, `deleted`, `synced`, `reset` and `closing`, and with `transitions=1` `transition`
and `gap`. The data is JSON in one line. docs/watch.md says what a client does with each event.
"""

import msgspec

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.time import Time
from podstatus.observe.history.store import HistoryEntry
from podstatus.observe.summary.pod import PodSummary
from podstatus.web.v1.wire import (
    ClosingEvent,
    DeletedEvent,
    GapEvent,
    ResetEvent,
    SyncedEvent,
    encode_response,
    pod_view,
    transition_view,
)
from podstatus.web.watch.request import ResumePoint

RETRY = b"retry: 1000\n\n"
"""After so many milliseconds, a browser that was cut off asks again."""

HEARTBEAT = b":\n\n"
"""A comment: nothing happened."""


def pod_body(pod: PodSummary, now: Time) -> bytes:
    """A pod, and how it is at this moment."""
    return _body("pod", pod_view(pod, now))


def deleted_body(uid: PodUID, namespace: str, name: str) -> bytes:
    """A pod that is not there any more, or is not like what is asked for."""
    return _body("deleted", DeletedEvent(uid=uid, namespace=namespace, name=name))


def transition_body(entry: HistoryEntry) -> bytes:
    """Something that happened to a pod."""
    return _body("transition", transition_view(entry))


def gap_body(after: int, before: int) -> bytes:
    """Moments that are not there any more."""
    return _body("gap", GapEvent(after=after, before=before))


def synced_body(*, resumed: bool) -> bytes:
    """From here on there are changes."""
    return _body("synced", SyncedEvent(resumed=resumed))


def reset_body(reason: str) -> bytes:
    """What was sent before does not count; all there is follows."""
    return _body("reset", ResetEvent(reason=reason))


def closing_event(reason: str) -> bytes:
    """The last event. It has no id: one goes on after what came before it."""
    return _body("closing", ClosingEvent(reason=reason))


def with_id(point: ResumePoint, body: bytes) -> bytes:
    """An event of which the client will say that it has seen it."""
    return b"id: %b\n%b" % (str(point).encode(), body)


def id_event(point: ResumePoint) -> bytes:
    """No event, but the client will say that it has got so far."""
    return b"id: %b\n\n" % str(point).encode()


def count_events(piece: bytes) -> int:
    """How many numbered events a piece has: their data has no line break in it."""
    return piece.count(b"\nevent: ")


def _body(name: str, value: msgspec.Struct) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), encode_response(value))
