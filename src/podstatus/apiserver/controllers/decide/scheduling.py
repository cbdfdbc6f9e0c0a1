"""Choose a node for a pod, and compose the events of the scheduler.

The choice is the first node, by name, that is ready, tolerated and has free capacity. Filters run
in upstream's order and report in upstream's words; the first that fails is reported for its node.
Not considered: preferences, host ports, volumes, other pods (affinity, spreading), preemption. The
name of an event is derived from its text, so a repetition finds the event and increments its count.

Upstream: the default plugins of pkg/scheduler v1.36.4 (nodeunschedulable, tainttoleration,
nodeaffinity, noderesources); Eventf in pkg/scheduler/schedule_one.go v1.36.4; makeEvent and
recordToSink, client-go v0.36.4, tools/events.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from podstatus.apiserver.controllers.decide.events import event_name, truncate_message
from podstatus.apiserver.controllers.decide.node_taints import (
    NO_SCHEDULE,
    NOT_READY,
    UNREACHABLE,
    UNSCHEDULABLE,
    desired_taints,
)
from podstatus.apiserver.strategies.base import Document
from podstatus.kube.node_selection import matches_node
from podstatus.kube.objects.event import NORMAL, WARNING
from podstatus.kube.objects.node import Node, Taint
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.pod_resources import pod_requests
from podstatus.kube.scalars.time import MicroTime, Time
from podstatus.kube.taints import is_taint_tolerated

ResourceNanos = Mapping[str, int]
"""By resource, in units of 1e-9, so that all quantities are integers."""

ONE_POD = 10**9
_UNSCHEDULABLE_TAINT = Taint(key=UNSCHEDULABLE, effect=NO_SCHEDULE)
_READINESS_TAINTS = ((NOT_READY, NO_SCHEDULE), (UNREACHABLE, NO_SCHEDULE))
"""Taints that the Ready condition already implies."""


class NodeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a node offers to pods."""

    name: str
    labels: dict[str, str]
    taints: tuple[Taint, ...]
    unschedulable: bool
    ready: bool
    allocatable: dict[str, int]


class PodRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod requests of a node."""

    spec: PodSpec
    amounts: dict[str, int]


class ScheduleResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result for one pod."""

    node: str = ""
    """The chosen node; empty if the pod fits nowhere."""
    message: str = ""
    """Why the pod fits nowhere; empty while no node is Ready."""


def node_info(node: Node) -> NodeInfo:
    """Return what a node offers. Raises QuantityError."""
    conditions = node.status.conditions or ()
    # The desired taints, not the stored ones: they apply before they are written.
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
    """Return what a pod requests. Raises QuantityError."""
    amounts = {name: q.nanos for name, q in pod_requests(pod.spec).items()}
    return PodRequest(spec=pod.spec, amounts=amounts | {"pods": ONE_POD})


def schedule_pod(
    request: PodRequest, nodes: Iterable[NodeInfo], requested: Mapping[str, ResourceNanos]
) -> ScheduleResult:
    """Choose a node; `requested` holds the requests of bound pods, by node."""
    reasons: Counter[str] = Counter()
    count, any_ready = 0, False
    for node in sorted(nodes, key=lambda node: node.name):
        count += 1
        mismatch = _filter_node(request.spec, node)
        failures = (
            [mismatch]
            if mismatch
            else _filter_resources(request, node, requested.get(node.name, {}))
        )
        if not failures:
            return ScheduleResult(node=node.name)
        any_ready = any_ready or node.ready
        reasons.update(failures)
    # No message while no node is Ready, as in a starting cluster: the pod stays pending.
    if not any_ready:
        return ScheduleResult()
    summary = ", ".join(sorted(f"{n} {reason}" for reason, n in reasons.items()))
    return ScheduleResult(message=f"0/{count} nodes are available: {summary}.")


def _filter_node(spec: PodSpec, node: NodeInfo) -> str:
    """Return why the node rejects the pod regardless of capacity; empty if it does not."""
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


def scheduled_event(pod: Document, node: str, now: Time) -> Document:
    meta = pod["metadata"]
    message = f"Successfully assigned {meta['namespace']}/{meta['name']} to {node}"
    fields = {"type": NORMAL, "reason": "Scheduled", "action": "Binding"}
    return _event(pod, message, now) | fields


def failed_scheduling_event(pod: Document, message: str, now: Time) -> Document:
    """Return the event FailedScheduling of a pod that fits nowhere."""
    fields = {"type": WARNING, "reason": "FailedScheduling", "action": "Scheduling"}
    return _event(pod, message, now) | fields


def increment_series(event: Document, now: Time) -> Document:
    """Return the event with its series count incremented."""
    count = (event.get("series") or {}).get("count") or 1
    series = {"count": count + 1, "lastObservedTime": MicroTime(now).wire}
    return event | {"series": series}


def _event(pod: Document, message: str, now: Time) -> Document:
    meta, message = pod["metadata"], truncate_message(message)
    return {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {
            "name": event_name(meta["name"], meta["uid"], message),
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
        "eventTime": MicroTime(now).wire,
        "reportingComponent": REPORTING_COMPONENT,
        "reportingInstance": _REPORTING_INSTANCE,
    }
