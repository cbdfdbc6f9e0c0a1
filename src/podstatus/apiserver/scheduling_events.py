"""What the scheduler tells about a pod, as events.

There is one for each thing it tells of a pod, named after what it says: who tells the same again
finds it there, and counts it up. Upstream: Eventf in pkg/scheduler/schedule_one.go v1.36.4;
makeEvent and recordToSink, client-go v0.36.4, tools/events.
"""

import hashlib

from podstatus.apiserver.strategy import Document
from podstatus.kube.objects.event import NORMAL, WARNING
from podstatus.kube.scalars.time import Time, micro_wire

REPORTER = "default-scheduler"
_INSTANCE = "default-scheduler-embedded"
_LONGEST_NAME = 253
_LONGEST_MESSAGE = 1024
_CUT = " ..."


def bound_event(pod: Document, node: str, now: Time) -> Document:
    """The pod has a node."""
    meta = pod["metadata"]
    told = f"Successfully assigned {meta['namespace']}/{meta['name']} to {node}"
    return _event(pod, told, now) | {"type": NORMAL, "reason": "Scheduled", "action": "Binding"}


def unschedulable_event(pod: Document, message: str, now: Time) -> Document:
    """The pod fits nowhere."""
    said = {"type": WARNING, "reason": "FailedScheduling", "action": "Scheduling"}
    return _event(pod, message, now) | said


def repeated_event(event: Document, now: Time) -> Document:
    """The event, told once more."""
    count = (event.get("series") or {}).get("count") or 1
    series = {"count": count + 1, "lastObservedTime": micro_wire(now)}
    return event | {"series": series}


def _event(pod: Document, message: str, now: Time) -> Document:
    meta, message = pod["metadata"], _shortened(message)
    return {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {
            "name": _event_name(meta["name"], meta["uid"], message),
            "namespace": meta["namespace"],
        },
        "involvedObject": {
            "kind": "Pod",
            "apiVersion": "v1",
            "namespace": meta["namespace"],
            "name": meta["name"],
            "uid": meta["uid"],
            "resourceVersion": meta["resourceVersion"],
        },
        "message": message,
        "eventTime": micro_wire(now),
        "reportingComponent": REPORTER,
        "reportingInstance": _INSTANCE,
    }


def _event_name(pod: str, uid: str, message: str) -> str:
    """The name of the pod and a number, as all names of events; the names of pods may be long."""
    told = hashlib.sha256(f"{uid} {message}".encode()).hexdigest()[:16]
    return f"{pod[: _LONGEST_NAME - len(told) - 1]}.{told}"


def _shortened(message: str) -> str:
    """As much of it as an event takes."""
    whole = message.encode()
    if len(whole) <= _LONGEST_MESSAGE:
        return message
    return whole[: _LONGEST_MESSAGE - len(_CUT)].decode(errors="ignore") + _CUT
