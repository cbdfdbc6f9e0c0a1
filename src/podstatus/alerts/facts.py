"""The facts of a pod or a node, as rules ask for them."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from podstatus.alerts.windows import WindowCounts
from podstatus.kube.scalars.quantity import Quantity, QuantityError
from podstatus.kube.scalars.time import Time
from podstatus.observe.status_view import Knowledge, NodeSummary, SyncState
from podstatus.observe.summary.health import SLOW_SECONDS, STUCK_SECONDS, pod_health
from podstatus.observe.summary.pod import ContainerSummary, PodSummary

Facts = Mapping[str, Any]
"""By the names of the table: strings, bools, ints, floats, and maps and lists of such."""
UNKNOWN = -1
_SECOND = 1_000_000_000
_NOTHING = WindowCounts()


class NodeReadings(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured of a node besides its summary; -1 where it is not known.

    A clock that nobody has compared is not called wrong: 0.
    """

    disk_used_fraction: float = -1.0
    disk_full_in_seconds: int = UNKNOWN
    clock_skew_seconds: int = 0
    rules_over_budget: str = ""


_UNMEASURED = NodeReadings()


def pod_facts(pod: PodSummary, now: int, counts: WindowCounts = _NOTHING) -> dict[str, Any]:
    """What is known of a pod at this moment."""
    return {
        "pod.name": pod.name,
        "pod.namespace": pod.namespace,
        "pod.uid": pod.uid,
        "pod.node": pod.node,
        "pod.labels": pod.labels,
        "pod.phase": pod.phase,
        "pod.reason": pod.reason,
        "pod.message": pod.message,
        "pod.qos": pod.qos,
        "pod.static": pod.static,
        "pod.ready": pod.ready,
        "pod.terminating": bool(pod.deleting),
        "pod.overdue": bool(pod.deleting) and pod.deleting.unix_nanos() < now,
        "pod.restarts": pod.restarts,
        "pod.health": pod_health(pod, Time.from_unix_nanos(now)).word.value,
        "pod.conditions": {condition.type: condition.status for condition in pod.conditions},
        "pod.containers": [_container(container) for container in pod.containers],
        "pod.readyChanges10m": counts.ready_changes,
        "pod.restarts10m": counts.restarts,
        "pod.foreignWrites10m": counts.foreign_writes,
    }


def health_moves(pod: PodSummary, now: int) -> int | None:
    """When a fact of a pod becomes another though nothing happens to it; None: never."""
    moves = (moment + 1 for moment in _moments(pod) if moment >= now)
    return min(moves, default=None)


def _moments(pod: PodSummary) -> Iterable[int]:
    """After which its health, or whether it is overdue, is another."""
    has_ended = pod.phase in ("Succeeded", "Failed")
    if pod.deleting:
        until = pod.deleting.unix_nanos()
        return (until,) if has_ended else (until, until + STUCK_SECONDS * _SECOND)
    if pod.phase == "Pending" and (pod.started or pod.created):
        return ((pod.started or pod.created).unix_nanos() + SLOW_SECONDS * _SECOND,)
    return ()


def _container(container: ContainerSummary) -> dict[str, Any]:
    state, reason, code = _state(container.state)
    _, last_reason, last_code = _state(container.last)
    return {
        "name": container.name,
        "kind": container.kind,
        "image": container.image,
        "state": state,
        "reason": reason,
        "exitCode": code,
        "message": container.message,
        "lastReason": last_reason,
        "lastExitCode": last_code,
        "ready": container.ready,
        "started": container.started is True,
        "restarts": container.restarts,
    }


def _state(text: str) -> tuple[str, str, int]:
    """What `terminated Error 3`, `waiting ImagePullBackOff` and `running` say, in parts."""
    state, _, rest = text.partition(" ")
    if state != "terminated":
        return state, rest, UNKNOWN
    reason, _, code = rest.rpartition(" ")
    return state, reason, int(code)


def node_facts(node: NodeSummary, readings: NodeReadings = _UNMEASURED) -> dict[str, Any]:
    """What is known of a node."""
    return {
        "node.name": node.name,
        "node.ready": node.ready,
        "node.reason": node.reason,
        "node.conditions": node.conditions,
        "node.labels": node.labels,
        "node.pods": node.pods,
        "node.leaseAgeSeconds": _whole(node.lease_age_seconds),
        "node.cpuUsedFraction": _fraction(node, "cpu"),
        "node.memoryUsedFraction": _fraction(node, "memory"),
        "node.diskUsedFraction": readings.disk_used_fraction,
        "node.diskFullInSeconds": readings.disk_full_in_seconds,
        "node.clockSkewSeconds": readings.clock_skew_seconds,
        "node.rulesOverBudget": readings.rules_over_budget,
    }


def sync_facts(sync: SyncState, knowledge: Knowledge) -> dict[str, Any]:
    """How far the API server has what is known here, to be told with the facts of the node."""
    return {
        "sync.unsent": sync.unsent,
        "sync.oldestUnsentSeconds": _whole(sync.oldest_unsent_seconds),
        "sync.inFlight": sync.in_flight,
        "sync.quarantined": sync.quarantined,
        "sync.outbox": sync.outbox,
        "sync.serverReachable": knowledge.server_reachable,
        "sync.serverAgeSeconds": _whole(knowledge.server_age_seconds),
    }


def _whole(seconds: float | None) -> int:
    """Whole seconds: rules compare them with whole numbers, and a clock gone back is no age."""
    return UNKNOWN if seconds is None else max(0, int(seconds))


def _fraction(node: NodeSummary, resource: str) -> float:
    if (measured := node.used_fractions.get(resource)) is not None:
        return measured
    used = node.used.get(resource)
    try:
        there = Quantity(node.capacity.get(resource, "0")).nanos
    except QuantityError:
        there = 0
    return -1.0 if used is None or there <= 0 else used * 1e9 / there
