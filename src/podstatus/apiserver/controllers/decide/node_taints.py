"""Which taints a node has because of how it is: they keep pods away that do not bear them.

Only taints against scheduling: those that end pods (NoExecute) are left to others.

Upstream: doNoScheduleTaintingPass, pkg/controller/nodelifecycle/node_lifecycle_controller.go
v1.36.4. It takes a node that says nothing about being Ready for a ready one; we do not.
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
    """The taints a node is to have: its own, and those that its conditions ask for.

    Those that it has already stay as they are; new ones are of now.
    """
    wanted = _desired_keys(node)
    taints = node.spec.taints or ()
    kept = tuple(t for t in taints if not _is_managed(t) or t.key in wanted)
    there = {taint.key for taint in kept if _is_managed(taint)}
    missing = (key for key in wanted if key not in there)
    return kept + tuple(Taint(key=k, effect=NO_SCHEDULE, time_added=now) for k in missing)


def _is_managed(taint: Taint) -> bool:
    return taint.effect == NO_SCHEDULE and taint.key in _MANAGED_KEYS


def _desired_keys(node: Node) -> list[str]:
    said = {condition.type: condition.status for condition in node.status.conditions or ()}
    said.setdefault("Ready", "False")
    keys = [key for (kind, status), key in _TAINT_KEYS.items() if said.get(kind) == status]
    return [*keys, UNSCHEDULABLE] if node.spec.unschedulable else keys
