"""The facts that rules can use: their table, their values for a pod or node, trial inputs.

Names are those of CEL: `pod.restarts10m`. An unknown fact is -1 or empty, never missing. Before a
rule is used it is tried on two trial inputs: one has every fact, the other no labels, no conditions
and no number but 0.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from podstatus.alerts.model import Scope
from podstatus.alerts.rules.windows import WindowCounts
from podstatus.kube.scalars.quantity import Quantity, QuantityError
from podstatus.kube.scalars.time import Time
from podstatus.observe.status_view import Freshness, NodeSummary, SyncState
from podstatus.observe.summary.health import (
    STUCK_DELETION_SECONDS,
    STUCK_PENDING_SECONDS,
    pod_health,
)
from podstatus.observe.summary.pod import ContainerSummary, PodSummary

FactType = Literal[
    "string", "bool", "int", "double", "map(string, string)", "list(map(string, dyn))"
]
"""As CEL calls them."""


class Fact(msgspec.Struct, frozen=True):
    """Something that is known of a pod, a node, or how far the API server has it."""

    name: str
    kind: FactType
    meaning: str


POD_FACTS = (
    Fact("pod.name", "string", "Its name."),
    Fact("pod.namespace", "string", "Its namespace."),
    Fact("pod.uid", "string", "Its UID."),
    Fact("pod.node", "string", "The node that it is on; empty if none has taken it."),
    Fact("pod.labels", "map(string, string)", "Its labels."),
    Fact("pod.phase", "string", "`Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`."),
    Fact("pod.reason", "string", "Why it is in this phase, in a word: `Evicted`; often empty."),
    Fact("pod.message", "string", "The same in a sentence, 512 characters of it at most."),
    Fact("pod.qos", "string", "`Guaranteed`, `Burstable` or `BestEffort`."),
    Fact("pod.static", "bool", "Whether it comes from a file or URL of the node."),
    Fact("pod.ready", "bool", "Whether its condition Ready is True."),
    Fact("pod.terminating", "bool", "Whether somebody has asked for its deletion."),
    Fact("pod.overdue", "bool", "Whether the time that this deletion may take is over."),
    Fact("pod.restarts", "int", "How often its containers were started again, all together."),
    Fact("pod.health", "string", "How it is, in the word that `podstatus get pods -o wide` has."),
    Fact("pod.conditions", "map(string, string)", "The status of each condition, by its type."),
    Fact("pod.containers", "list(map(string, dyn))", "Its containers, init containers first."),
    Fact("pod.readyChanges10m", "int", "How often it became Ready or ceased to be, in 10 minutes."),
    Fact("pod.restarts10m", "int", "How often its containers were started again in 10 minutes."),
    Fact("pod.foreignWrites10m", "int", "How often others wrote its status, in 10 minutes."),
)

CONTAINER_FACTS = (
    Fact("name", "string", "Its name."),
    Fact("kind", "string", "`container`, `init`, `sidecar` or `ephemeral`."),
    Fact("image", "string", "Its image, as the spec has it."),
    Fact("state", "string", "`running`, `waiting` or `terminated`; empty if nothing is known yet."),
    Fact("reason", "string", "Why it waits, or has ended: `CrashLoopBackOff`, `OOMKilled`."),
    Fact("exitCode", "int", "What it ended with; -1 if it has not."),
    Fact("message", "string", "Why, in a sentence, 512 characters of it at most."),
    Fact("lastReason", "string", "Why the attempt before this one ended; empty if there was none."),
    Fact("lastExitCode", "int", "What that one ended with; -1 if there was none."),
    Fact("ready", "bool", "Whether it is ready."),
    Fact("started", "bool", "Whether it runs and its startup probe, if any, has succeeded."),
    Fact("restarts", "int", "How often it was started again."),
)
"""Of each element of `pod.containers`."""

NODE_FACTS = (
    Fact("node.name", "string", "Its name."),
    Fact("node.ready", "bool", "Whether its condition Ready is True."),
    Fact("node.reason", "string", "Why it is so, in a word: `KubeletNotReady`."),
    Fact("node.conditions", "map(string, string)", "The status of each condition, by its type."),
    Fact("node.labels", "map(string, string)", "Its labels."),
    Fact("node.pods", "int", "How many pods it has that have not ended."),
    Fact("node.leaseAgeSeconds", "int", "Since when its lease has not been renewed."),
    Fact("node.cpuUsedFraction", "double", "The part of its CPUs that is used: 0.0 to 1.0."),
    Fact("node.memoryUsedFraction", "double", "The part of its memory that is used: 0.0 to 1.0."),
    Fact("node.diskUsedFraction", "double", "The part of the disk of the agent's root-dir."),
    Fact("node.diskFullInSeconds", "int", "When that is full if it goes on so; -1 also if never."),
    Fact(
        "node.clockSkewSeconds",
        "int",
        "How far its clock is from the API server's, either way; 0 also if that is not known.",
    ),
    Fact(
        "node.rulesOverBudget",
        "string",
        "Alert rules that were switched off because they took too long or too much memory.",
    ),
)

SYNC_FACTS = (
    Fact("sync.unsent", "int", "Pods with something that the API server has not acknowledged."),
    Fact("sync.oldestUnsentSeconds", "int", "How long the oldest of that has waited."),
    Fact("sync.inFlight", "int", "Statuses that are being sent."),
    Fact("sync.quarantined", "int", "Pods whose status the API server rejects."),
    Fact("sync.outbox", "int", "Last statuses on the disk that have not arrived."),
    Fact("sync.serverReachable", "bool", "Whether the API server answers."),
    Fact("sync.serverAgeSeconds", "int", "Since when it has not been heard."),
)
"""Of an agent alone."""

FACTS: dict[Scope, tuple[Fact, ...]] = {"pod": POD_FACTS, "node": NODE_FACTS + SYNC_FACTS}
"""What a rule of each scope may ask for."""


Facts = Mapping[str, Any]
"""By the names of the table: strings, bools, ints, floats, and maps and lists of such."""
UNKNOWN = -1
_SECOND = 1_000_000_000
_NO_COUNTS = WindowCounts()


class NodeReadings(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured of a node besides its summary; -1 where it is not known.

    A clock that nobody has compared is not called wrong: 0.
    """

    disk_used_fraction: float = -1.0
    disk_full_in_seconds: int = UNKNOWN
    clock_skew_seconds: int = 0
    rules_over_budget: str = ""


_UNMEASURED = NodeReadings()


def pod_facts(pod: PodSummary, now: int, counts: WindowCounts = _NO_COUNTS) -> dict[str, Any]:
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


def next_health_change(pod: PodSummary, now: int) -> int | None:
    """When a fact of a pod becomes another though nothing happens to it; None: never."""
    moves = (moment + 1 for moment in _change_times(pod) if moment >= now)
    return min(moves, default=None)


def _change_times(pod: PodSummary) -> Iterable[int]:
    """After which its health, or whether it is overdue, is another."""
    has_ended = pod.phase in ("Succeeded", "Failed")
    if pod.deleting:
        until = pod.deleting.unix_nanos()
        return (until,) if has_ended else (until, until + STUCK_DELETION_SECONDS * _SECOND)
    if pod.phase == "Pending" and (pod.started or pod.created):
        return ((pod.started or pod.created).unix_nanos() + STUCK_PENDING_SECONDS * _SECOND,)
    return ()


def _container(container: ContainerSummary) -> dict[str, Any]:
    state, reason, code = _parse_state(container.state)
    _, last_reason, last_code = _parse_state(container.last)
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


def _parse_state(text: str) -> tuple[str, str, int]:
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
        "node.leaseAgeSeconds": _whole_seconds(node.lease_age_seconds),
        "node.cpuUsedFraction": _fraction(node, "cpu"),
        "node.memoryUsedFraction": _fraction(node, "memory"),
        "node.diskUsedFraction": readings.disk_used_fraction,
        "node.diskFullInSeconds": readings.disk_full_in_seconds,
        "node.clockSkewSeconds": readings.clock_skew_seconds,
        "node.rulesOverBudget": readings.rules_over_budget,
    }


def sync_facts(sync: SyncState, freshness: Freshness) -> dict[str, Any]:
    """How far the API server has what is known here, to be told with the facts of the node."""
    return {
        "sync.unsent": sync.unsent,
        "sync.oldestUnsentSeconds": _whole_seconds(sync.oldest_unsent_seconds),
        "sync.inFlight": sync.in_flight,
        "sync.quarantined": sync.quarantined,
        "sync.outbox": sync.outbox,
        "sync.serverReachable": freshness.server_reachable,
        "sync.serverAgeSeconds": _whole_seconds(freshness.server_age_seconds),
    }


def _whole_seconds(seconds: float | None) -> int:
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


_FULL_VALUES: dict[str, Any] = {
    "string": "text",
    "bool": True,
    "int": 1,
    "double": 0.5,
    "map(string, string)": {"Ready": "True"},
}
_EMPTY_VALUES: dict[str, Any] = {
    "string": "",
    "bool": False,
    "int": 0,
    "double": 0.0,
    "map(string, string)": {},
}


def trial_inputs(scope: Scope) -> dict[str, dict[str, Any]]:
    """The facts of some that do not exist, each with what it is like."""
    return {
        f"a {scope} that has everything": _trial_input(FACTS[scope], _FULL_VALUES),
        f"a {scope} that has nothing yet": _trial_input(FACTS[scope], _EMPTY_VALUES),
    }


def _trial_input(facts: tuple[Fact, ...], values: dict[str, Any]) -> dict[str, Any]:
    container = {fact.name: values[fact.kind] for fact in CONTAINER_FACTS}
    return {fact.name: values.get(fact.kind, [container]) for fact in facts}
