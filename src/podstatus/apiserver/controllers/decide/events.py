"""Events of the controllers; one that is repeated is counted.

The name of an event is derived from its text, so a repetition finds the event.

Upstream: client-go v0.36.4, tools/record/event.go, tools/internal/events/interfaces.go.
"""

import hashlib

import msgspec

from podstatus.apiserver.strategies.base import Document
from podstatus.kube.scalars.time import Time

_MAX_NAME_LENGTH = 253
_MAX_MESSAGE_BYTES = 1024
_ELLIPSIS = " ..."


class EventText(msgspec.Struct, frozen=True):
    """The type, reason and message of an event."""

    type: str
    reason: str
    message: str


def controller_event(about: Document, text: EventText, component: str, now: Time) -> Document:
    """Return the event that a controller records about an object, given by its reference."""
    message = truncate_message(text.message)
    identity = f"{about.get('uid', '')} {component} {text.reason}"
    return {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {
            "name": event_name(about["name"], identity, message),
            "namespace": about.get("namespace") or "default",
        },
        "involvedObject": about,
        "type": text.type,
        "reason": text.reason,
        "message": message,
        "source": {"component": component},
        "reportingComponent": component,
        "firstTimestamp": now.wire,
        "lastTimestamp": now.wire,
        "count": 1,
    }


def count_event(event: Document, now: Time) -> Document:
    """Return an event that was recorded once more."""
    return event | {"count": (event.get("count") or 1) + 1, "lastTimestamp": now.wire}


def event_name(name: str, identity: str, message: str) -> str:
    """Return the object's name (truncated if long) and a hash, the usual form of event names."""
    digest = hashlib.sha256(f"{identity} {message}".encode()).hexdigest()[:16]
    return f"{name[: _MAX_NAME_LENGTH - len(digest) - 1]}.{digest}"


def truncate_message(message: str) -> str:
    """Truncate to the maximum length of an event message."""
    whole = message.encode()
    if len(whole) <= _MAX_MESSAGE_BYTES:
        return message
    return whole[: _MAX_MESSAGE_BYTES - len(_ELLIPSIS)].decode(errors="ignore") + _ELLIPSIS
