"""Encode the server-sent events of a watch.

    id: 1f2e3d4c-17
    event: pod
    data: {"uid":"…","namespace":"default","name":"web-0",…}

Events are `pod`, `deleted`, `synced`, `reset` and `closing`, and with `transitions=1` `transition`
and `gap`. The data is JSON in one line. docs/watch.md says what a client does with each event.
"""

import msgspec

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.time import Time
from podstatus.observe.history.sqlite_store import HistoryEntry
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
"""A browser reconnects after this many milliseconds."""

HEARTBEAT = b":\n\n"
"""A comment, which shows that the connection is alive."""


def pod_body(pod: PodSummary, now: Time) -> bytes:
    """Event `pod`, with the pod's health at this time."""
    return _body("pod", pod_view(pod, now))


def deleted_body(uid: PodUID, namespace: str, name: str) -> bytes:
    """Event `deleted`: the pod is gone, or does not match the filter any more."""
    return _body("deleted", DeletedEvent(uid=uid, namespace=namespace, name=name))


def transition_body(entry: HistoryEntry) -> bytes:
    """Event `transition`, from an entry of the history."""
    return _body("transition", transition_view(entry))


def gap_body(after: int, before: int) -> bytes:
    """Event `gap`: the transitions between these ids have been pruned."""
    return _body("gap", GapEvent(after=after, before=before))


def synced_body(*, resumed: bool) -> bytes:
    """Event `synced`: the initial state is complete."""
    return _body("synced", SyncedEvent(resumed=resumed))


def reset_body(reason: str) -> bytes:
    """Event `reset`: the whole state follows."""
    return _body("reset", ResetEvent(reason=reason))


def closing_event(reason: str) -> bytes:
    """Event `closing`, the last one. It has no id: a client resumes after the event before."""
    return _body("closing", ClosingEvent(reason=reason))


def with_id(point: ResumePoint, body: bytes) -> bytes:
    """Prefix an event with its id, which the client sends to resume."""
    return b"id: %b\n%b" % (str(point).encode(), body)


def id_event(point: ResumePoint) -> bytes:
    """A block with an id and no data: not an event, but the client resumes after it."""
    return b"id: %b\n\n" % str(point).encode()


def count_events(chunk: bytes) -> int:
    """The number of events with an id in a chunk; their data has no line breaks."""
    return chunk.count(b"\nevent: ")


def _body(name: str, value: msgspec.Struct) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), encode_response(value))
