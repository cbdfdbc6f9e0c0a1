"""Whether a node is silent, and what its conditions become then.

A node is heard when its Lease is renewed or its Ready condition has a new heartbeat. When that was
is measured by this server, with the monotonic clock: clocks of nodes may be wrong, and a clock may
be set.

Upstream: tryUpdateNodeHealth, pkg/controller/nodelifecycle/node_lifecycle_controller.go v1.36.4.
"""

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import structs

from podstatus.apiserver.strategies.base import Document
from podstatus.kube.objects.node import NodeCondition
from podstatus.kube.scalars.time import MicroTime, Time

READY: Final = "Ready"
TRUE: Final = "True"
FALSE: Final = "False"
UNKNOWN: Final = "Unknown"

_WATCHED_CONDITIONS: Final = (READY, "MemoryPressure", "DiskPressure", "PIDPressure")
"""NetworkUnavailable is not the node's own."""
_NEVER_UPDATED = {
    "reason": "NodeStatusNeverUpdated",
    "message": "Kubelet never posted node status.",
}
_STOPPED = {"reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}


class NodeHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The latest sign of life of a node."""

    heard_at: int
    """When it was observed, in nanoseconds of the monotonic clock."""
    ready: NodeCondition | None = None
    """The Ready condition as last observed."""
    renewed: MicroTime | None = None
    """The latest `renewTime` of its Lease."""

    def heard_later(self, later_ns: int, now: int) -> "NodeHealth":
        """Return the health as if the node had been heard so much later, but not after now."""
        return structs.replace(self, heard_at=min(now, self.heard_at + later_ns))


def observe_node(health: NodeHealth | None, ready: NodeCondition | None, now: int) -> NodeHealth:
    """Return the health after the Node was observed with this Ready condition."""
    if health is None:
        return NodeHealth(heard_at=now, ready=ready)
    return structs.replace(
        health, ready=ready, heard_at=now if _is_heartbeat(health.ready, ready) else health.heard_at
    )


def observe_lease(health: NodeHealth, renewed: MicroTime | None, now: int) -> NodeHealth:
    """Return the health after the Lease was observed; one that was not renewed changes nothing.

    Any other `renewTime` is a renewal. Upstream ignores an earlier one, so there a node whose clock
    was set back is silent.
    """
    if renewed is None or renewed == health.renewed:
        return health
    return structs.replace(health, renewed=renewed, heard_at=now)


def is_silent(health: NodeHealth, now: int, *, grace: float, startup_grace: float) -> bool:
    """Return whether the node was last heard longer ago than its grace period, in seconds.

    `startup_grace` applies to a node that has never reported whether it is Ready.
    """
    seconds = startup_grace if health.ready is None else grace
    return now - health.heard_at > seconds * 1e9


def ready_condition(conditions: Iterable[NodeCondition] | None) -> NodeCondition | None:
    """Return the Ready condition; None if there is none."""
    return next((c for c in conditions or () if c.type == READY), None)


def mark_unknown(node: Document, now: Time) -> Document:
    """Return a silent node with the conditions that it reports itself Unknown.

    Heartbeat times stay: they tell when the node reported last.
    """
    status = node.get("status") or {}
    conditions = [_stopped(c, now) for c in status.get("conditions") or ()]
    types = {condition.get("type") for condition in conditions}
    created = node["metadata"].get("creationTimestamp")
    conditions += [
        {
            "type": kind,
            "status": UNKNOWN,
            "lastHeartbeatTime": created,
            "lastTransitionTime": now.wire,
        }
        | _NEVER_UPDATED
        for kind in _WATCHED_CONDITIONS
        if kind not in types
    ]
    return node | {"status": status | {"conditions": conditions}}


def _stopped(condition: Document, now: Time) -> Document:
    if condition.get("type") not in _WATCHED_CONDITIONS or condition.get("status") == UNKNOWN:
        return condition
    return condition | {"status": UNKNOWN, "lastTransitionTime": now.wire} | _STOPPED


def _is_heartbeat(before: NodeCondition | None, after: NodeCondition | None) -> bool:
    if before is None or after is None:
        return before is not after
    return before.last_heartbeat_time != after.last_heartbeat_time
