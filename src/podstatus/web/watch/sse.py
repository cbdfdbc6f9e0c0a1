"""Server-sent events: what is sent to those who watch.

    id: 1f2e3d4c-17
    event: pod
    data: {"uid":"…","namespace":"default","name":"web-0",…}

Events are `pod`, `gone`, `synced`, `anew`, `closing_event`, and of moments `moment` and `missed`.
The data is JSON without a line break in it. docs/watch.md says what a client makes of them."""

import msgspec

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.time import Time
from podstatus.observe.history.store import HistoryEntry
from podstatus.observe.snapshot_cache import PodTombstone
from podstatus.observe.summary.pod import PodSummary
from podstatus.web.v1.wire import encode_response, pod_view, transition_view
from podstatus.web.watch.request import ResumePoint

RETRY = b"retry: 1000\n\n"
"""After so many milliseconds, a browser that was cut off asks again."""

HEARTBEAT = b":\n\n"
"""A comment: nothing happened."""


class SyncedEvent(msgspec.Struct, frozen=True):
    """All that was there when it was asked for has been sent; from here on there are changes."""

    resumed: bool
    """Whether it was what changed, and not all."""


class ReasonEvent(msgspec.Struct, frozen=True):
    """Why one has to begin anew, or was cut off."""

    reason: str


class GapEvent(msgspec.Struct, frozen=True):
    """Moments that are not there any more: those later than one, and before another."""

    after: int
    before: int


def pod_body(pod: PodSummary, now: Time) -> bytes:
    """A pod, and how it is at this moment."""
    return _body("pod", pod_view(pod, now))


def deleted_body(uid: PodUID, namespace: str, name: str) -> bytes:
    """A pod that is not there any more, or is not like what is asked for."""
    return _body("gone", PodTombstone(uid, namespace, name))


def transition_body(moment: HistoryEntry) -> bytes:
    """Something that happened to a pod."""
    return _body("moment", transition_view(moment))


def gap_body(after: int, before: int) -> bytes:
    """Moments that are not there any more."""
    return _body("missed", GapEvent(after, before))


def synced_body(*, resumed: bool) -> bytes:
    """From here on there are changes."""
    return _body("synced", SyncedEvent(resumed))


def reset_body(reason: str) -> bytes:
    """What was sent before does not count; all there is follows."""
    return _body("anew", ReasonEvent(reason))


def closing_event(reason: str) -> bytes:
    """The last event. It has no id: one goes on after what came before it."""
    return _body("cut", ReasonEvent(reason))


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
