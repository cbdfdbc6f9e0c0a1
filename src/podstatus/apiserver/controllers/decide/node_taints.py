"""The taints that a node's conditions demand: NoSchedule by all of them, NoExecute by Ready.

NoExecute taints evict pods, so when they are added is decided elsewhere (`decide.zones`).

Upstream: doNoScheduleTaintingPass and processTaintBaseEviction,
pkg/controller/nodelifecycle/node_lifecycle_controller.go v1.36.4. Upstream takes a node without a
Ready condition for ready; here it is not ready.
"""

from collections.abc import Iterable

from podstatus.kube.objects.node import Node, Taint
from podstatus.kube.scalars.time import Time
from podstatus.kube.taints import NO_EXECUTE

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


def no_execute_key(ready: str) -> str:
    """Return the key of the taint NoExecute for this status of Ready; empty for True."""
    return _TAINT_KEYS.get(("Ready", ready), "")


def with_no_execute(taints: Iterable[Taint], key: str, now: Time | None) -> tuple[Taint, ...]:
    """Return the taints with this one of not-ready and unreachable as NoExecute, or with neither.

    One that is there keeps its time; a new one gets `now`.
    """
    others = {NOT_READY, UNREACHABLE} - {key}
    retained = tuple(t for t in taints if t.effect != NO_EXECUTE or t.key not in others)
    if not key or any(t.key == key and t.effect == NO_EXECUTE for t in retained):
        return retained
    return (*retained, Taint(key=key, effect=NO_EXECUTE, time_added=now))


def no_execute_keys(taints: Iterable[Taint]) -> frozenset[str]:
    """Return which of not-ready and unreachable a node has as NoExecute."""
    effects = {t.key for t in taints if t.effect == NO_EXECUTE}
    return frozenset(effects & {NOT_READY, UNREACHABLE})


def _is_managed(taint: Taint) -> bool:
    return taint.effect == NO_SCHEDULE and taint.key in _MANAGED_KEYS


def _desired_keys(node: Node) -> list[str]:
    statuses = {condition.type: condition.status for condition in node.status.conditions or ()}
    statuses.setdefault("Ready", "False")
    keys = [key for (kind, status), key in _TAINT_KEYS.items() if statuses.get(kind) == status]
    return [*keys, UNSCHEDULABLE] if node.spec.unschedulable else keys
