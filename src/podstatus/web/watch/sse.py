"""Encode the server-sent events of a watch.

    id: 1f2e3d4c-17
    event: pod
    data: {"uid":"…","namespace":"default","name":"web-0",…}

Events are `pod`, `deleted`, `synced`, `reset` and `closing`, and with `transitions=1` `transition`
and `gap`. The data is JSON in one line. docs/reference/http/v1.md says what a client does with each
event.
"""

from collections.abc import Mapping

import msgspec

from podstatus.web.v1.wire import (
    ClosingEvent,
    DeletedEvent,
    GapEvent,
    PodView,
    ResetEvent,
    SyncedEvent,
    TransitionView,
    encode_response,
)
from podstatus.web.watch.request import ResumePoint

_EVENT_NAMES: Mapping[type[msgspec.Struct], str] = {
    PodView: "pod",
    DeletedEvent: "deleted",
    SyncedEvent: "synced",
    ResetEvent: "reset",
    ClosingEvent: "closing",
    TransitionView: "transition",
    GapEvent: "gap",
}
RETRY = b"retry: 1000\n\n"
"""A browser reconnects after this many milliseconds."""

HEARTBEAT = b":\n\n"
"""A comment, which shows that the connection is alive."""


def encode_event(event: msgspec.Struct) -> bytes:
    """Encode an event without an id: after `closing`, a client resumes after the event before."""
    name = _EVENT_NAMES[type(event)]
    return b"event: %b\ndata: %b\n\n" % (name.encode(), encode_response(event))


def with_id(point: ResumePoint, body: bytes) -> bytes:
    """Prefix an event with its id, which the client sends to resume."""
    return b"id: %b\n%b" % (str(point).encode(), body)


def id_event(point: ResumePoint) -> bytes:
    """A block with an id and no data: not an event, but the client resumes after it."""
    return b"id: %b\n\n" % str(point).encode()


def count_events(chunk: bytes) -> int:
    """The number of events with an id in a chunk; their data has no line breaks."""
    return chunk.count(b"\nevent: ")
