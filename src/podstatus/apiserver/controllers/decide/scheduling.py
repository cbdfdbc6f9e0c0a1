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
    desired_taints,
)
from podstatus.apiserver.strategies.base import Document
from podstatus.kube.node_selection import is_taint_tolerated, matches_node
from podstatus.kube.objects.event import NORMAL, WARNING
from podstatus.kube.objects.node import Node, Taint
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.pod_resources import pod_requests
from podstatus.kube.scalars.time import Time, micro_wire

ResourceNanos = Mapping[str, int]
"""By resource, in units of 1e-9, so that whole numbers do."""

ONE_POD = 10**9
_UNSCHEDULABLE_TAINT = Taint(key=UNSCHEDULABLE, effect=NO_SCHEDULE)
_READINESS_TAINTS = ((NOT_READY, NO_SCHEDULE), (UNREACHABLE, NO_SCHEDULE))
"""What the condition Ready says already."""


class NodeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a node offers."""

    name: str
    labels: dict[str, str]
    taints: tuple[Taint, ...]
    unschedulable: bool
    ready: bool
    allocatable: dict[str, int]


class PodRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod asks for."""

    spec: PodSpec
    amounts: dict[str, int]


class ScheduleResult(msgspec.Struct, frozen=True, kw_only=True):
    """Where a pod goes."""

    node: str = ""
    """Empty if it fits nowhere."""
    message: str = ""
    """Why it fits nowhere, if there is a node that is Ready."""


def node_info(node: Node) -> NodeInfo:
    """What a node offers. Raises QuantityError."""
    conditions = node.status.conditions or ()
    # As they are going to be: nobody has to wait until they are written.
    taints = desired_taints(node)
    return NodeInfo(
        name=node.metadata.name,
        labels=dict(node.metadata.labels or {}),
        taints=tuple(t for t in taints if (t.key, t.effect) not in _READINESS_TAINTS),
        unschedulable=node.spec.unschedulable,
        ready=any(c.type == "Ready" and c.status == "True" for c in conditions),
        allocatable={name: q.nanos for name, q in (node.status.allocatable or {}).items()},
    )


def pod_request(pod: Pod) -> PodRequest:
    """What a pod asks for. Raises QuantityError."""
    amounts = {name: q.nanos for name, q in pod_requests(pod.spec).items()}
    return PodRequest(spec=pod.spec, amounts=amounts | {"pods": ONE_POD})


def schedule_pod(
    request: PodRequest, nodes: Iterable[NodeInfo], requested: Mapping[str, ResourceNanos]
) -> ScheduleResult:
    """The node for a pod; `requested` is what is taken already, by node."""
    reasons: Counter[str] = Counter()
    count, known = 0, False
    for room in sorted(nodes, key=lambda room: room.name):
        count += 1
        closed = _filter_node(request.spec, room)
        objections = (
            [closed] if closed else _filter_resources(request, room, requested.get(room.name, {}))
        )
        if not objections:
            return ScheduleResult(node=room.name)
        known = known or room.ready
        reasons.update(objections)
    # While no node is Ready it just waits, as in a cluster that is young.
    if not known:
        return ScheduleResult()
    told = ", ".join(sorted(f"{n} {reason}" for reason, n in reasons.items()))
    return ScheduleResult(message=f"0/{count} nodes are available: {told}.")


def _filter_node(spec: PodSpec, node: NodeInfo) -> str:
    """Why a node takes no pods of this kind, however large it is; empty if it does."""
    tolerations = spec.tolerations or ()
    if not node.ready:
        return "node(s) were not ready"
    if node.unschedulable and not is_taint_tolerated(_UNSCHEDULABLE_TAINT, tolerations):
        return "node(s) were unschedulable"
    hard = (t for t in node.taints if t.effect in ("NoSchedule", "NoExecute"))
    if not all(is_taint_tolerated(taint, tolerations) for taint in hard):
        return "node(s) had untolerated taint(s)"
    return ""


def _filter_resources(request: PodRequest, node: NodeInfo, requested: ResourceNanos) -> list[str]:
    if not matches_node(request.spec, node.name, node.labels):
        return ["node(s) didn't match Pod's node affinity/selector"]
    short = [
        name
        for name, amount in request.amounts.items()
        if amount > 0 and amount > node.allocatable.get(name, 0) - requested.get(name, 0)
    ]
    return ["Too many pods" if name == "pods" else f"Insufficient {name}" for name in short]


REPORTING_COMPONENT = "default-scheduler"
_REPORTING_INSTANCE = "default-scheduler-embedded"
_MAX_NAME_LENGTH = 253
_MAX_MESSAGE_BYTES = 1024
_ELLIPSIS = " ..."


def scheduled_event(pod: Document, node: str, now: Time) -> Document:
    """The pod has a node."""
    meta = pod["metadata"]
    told = f"Successfully assigned {meta['namespace']}/{meta['name']} to {node}"
    return _event(pod, told, now) | {"type": NORMAL, "reason": "Scheduled", "action": "Binding"}


def failed_scheduling_event(pod: Document, message: str, now: Time) -> Document:
    """The pod fits nowhere."""
    said = {"type": WARNING, "reason": "FailedScheduling", "action": "Scheduling"}
    return _event(pod, message, now) | said


def increment_series(event: Document, now: Time) -> Document:
    """The event, told once more."""
    count = (event.get("series") or {}).get("count") or 1
    series = {"count": count + 1, "lastObservedTime": micro_wire(now)}
    return event | {"series": series}


def _event(pod: Document, message: str, now: Time) -> Document:
    meta, message = pod["metadata"], _truncate(message)
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
        "reportingComponent": REPORTING_COMPONENT,
        "reportingInstance": _REPORTING_INSTANCE,
    }


def _event_name(pod: str, uid: str, message: str) -> str:
    """The name of the pod and a number, as all names of events; the names of pods may be long."""
    told = hashlib.sha256(f"{uid} {message}".encode()).hexdigest()[:16]
    return f"{pod[: _MAX_NAME_LENGTH - len(told) - 1]}.{told}"


def _truncate(message: str) -> str:
    """As much of it as an event takes."""
    whole = message.encode()
    if len(whole) <= _MAX_MESSAGE_BYTES:
        return message
    return whole[: _MAX_MESSAGE_BYTES - len(_ELLIPSIS)].decode(errors="ignore") + _ELLIPSIS
