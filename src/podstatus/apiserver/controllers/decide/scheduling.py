"""Choose a node for a pod, and compose the events of the scheduler.

The choice is the first node, by name, that is ready, tolerated and has free capacity. Filters run
in upstream's order and report in upstream's words; the first that fails is reported for its node.
Not considered: preferences, host ports, volumes, other pods (affinity, spreading), preemption. An
event is named after its text, so a repeated one is found and counted up.

Upstream: the default plugins of pkg/scheduler v1.36.4 (nodeunschedulable, tainttoleration,
nodeaffinity, noderesources); Eventf in pkg/scheduler/schedule_one.go v1.36.4; makeEvent and
recordToSink, client-go v0.36.4, tools/events.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from podstatus.apiserver.controllers.decide.node_taints import (
    NO_SCHEDULE,
    NOT_READY,
    UNREACHABLE,
    UNSCHEDULABLE,
    settled_taints,
)
from podstatus.apiserver.strategies.base import Document
from podstatus.kube.node_selection import is_taint_tolerated, matches_node
from podstatus.kube.objects.event import NORMAL, WARNING
from podstatus.kube.objects.node import Node, Taint
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.pod_resources import pod_requests
from podstatus.kube.scalars.time import Time, micro_wire

Amounts = Mapping[str, int]
"""By resource, in units of 1e-9, so that whole numbers do."""

ONE_POD = 10**9
_CORDONED = Taint(key=UNSCHEDULABLE, effect=NO_SCHEDULE)
_NO_NEWS = ((NOT_READY, NO_SCHEDULE), (UNREACHABLE, NO_SCHEDULE))
"""What the condition Ready says already."""


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """What a node offers."""

    name: str
    labels: dict[str, str]
    taints: tuple[Taint, ...]
    unschedulable: bool
    ready: bool
    allocatable: dict[str, int]


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod asks for."""

    spec: PodSpec
    amounts: dict[str, int]


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """Where a pod goes."""

    node: str = ""
    """Empty if it fits nowhere."""
    message: str = ""
    """Why it fits nowhere, if there is a node that is Ready."""


def room_of(node: Node) -> Room:
    """What a node offers. Raises QuantityError."""
    conditions = node.status.conditions or ()
    # As they are going to be: nobody has to wait until they are written.
    taints = settled_taints(node)
    return Room(
        name=node.metadata.name,
        labels=dict(node.metadata.labels or {}),
        taints=tuple(t for t in taints if (t.key, t.effect) not in _NO_NEWS),
        unschedulable=node.spec.unschedulable,
        ready=any(c.type == "Ready" and c.status == "True" for c in conditions),
        allocatable={name: q.nanos for name, q in (node.status.allocatable or {}).items()},
    )


def need_of(pod: Pod) -> Need:
    """What a pod asks for. Raises QuantityError."""
    amounts = {name: q.nanos for name, q in pod_requests(pod.spec).items()}
    return Need(spec=pod.spec, amounts=amounts | {"pods": ONE_POD})


def choose(need: Need, rooms: Iterable[Room], loads: Mapping[str, Amounts]) -> Choice:
    """The node for a pod; `loads` is what is taken already, by node."""
    reasons: Counter[str] = Counter()
    count, known = 0, False
    for room in sorted(rooms, key=lambda room: room.name):
        count += 1
        closed = _closed(need.spec, room)
        objections = [closed] if closed else _misfits(need, room, loads.get(room.name, {}))
        if not objections:
            return Choice(node=room.name)
        known = known or room.ready
        reasons.update(objections)
    # While no node is Ready it just waits, as in a cluster that is young.
    if not known:
        return Choice()
    told = ", ".join(sorted(f"{n} {reason}" for reason, n in reasons.items()))
    return Choice(message=f"0/{count} nodes are available: {told}.")


def _closed(spec: PodSpec, room: Room) -> str:
    """Why a node takes no pods of this kind, however large it is; empty if it does."""
    tolerations = spec.tolerations or ()
    if not room.ready:
        return "node(s) were not ready"
    if room.unschedulable and not is_taint_tolerated(_CORDONED, tolerations):
        return "node(s) were unschedulable"
    hard = (t for t in room.taints if t.effect in ("NoSchedule", "NoExecute"))
    if not all(is_taint_tolerated(taint, tolerations) for taint in hard):
        return "node(s) had untolerated taint(s)"
    return ""


def _misfits(need: Need, room: Room, load: Amounts) -> list[str]:
    if not matches_node(need.spec, room.name, room.labels):
        return ["node(s) didn't match Pod's node affinity/selector"]
    short = [
        name
        for name, amount in need.amounts.items()
        if amount > 0 and amount > room.allocatable.get(name, 0) - load.get(name, 0)
    ]
    return ["Too many pods" if name == "pods" else f"Insufficient {name}" for name in short]


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
