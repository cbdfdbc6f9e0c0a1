"""The NoSchedule taints that a node's conditions demand.

NoExecute taints, which evict pods, are not managed.

Upstream: doNoScheduleTaintingPass, pkg/controller/nodelifecycle/node_lifecycle_controller.go
v1.36.4. Upstream takes a node without a Ready condition for ready; here it is not ready.
"""

from podstatus.kube.objects.node import Node, Taint
from podstatus.kube.scalars.time import Time

NO_SCHEDULE = "NoSchedule"
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"

_TAINT_KEYS = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
}
_MANAGED_KEYS = frozenset({*_TAINT_KEYS.values(), UNSCHEDULABLE})


def desired_taints(node: Node, now: Time | None = None) -> tuple[Taint, ...]:
    """Return the taints a node should have: unmanaged ones, and those its conditions demand.

    Existing taints are kept unchanged; new ones get `now` as their time.
    """
    keys = _desired_keys(node)
    taints = node.spec.taints or ()
    retained = tuple(t for t in taints if not _is_managed(t) or t.key in keys)
    present = {taint.key for taint in retained if _is_managed(taint)}
    missing = (key for key in keys if key not in present)
    return retained + tuple(Taint(key=k, effect=NO_SCHEDULE, time_added=now) for k in missing)


def _is_managed(taint: Taint) -> bool:
    return taint.effect == NO_SCHEDULE and taint.key in _MANAGED_KEYS


def _desired_keys(node: Node) -> list[str]:
    statuses = {condition.type: condition.status for condition in node.status.conditions or ()}
    statuses.setdefault("Ready", "False")
    keys = [key for (kind, status), key in _TAINT_KEYS.items() if statuses.get(kind) == status]
    return [*keys, UNSCHEDULABLE] if node.spec.unschedulable else keys
