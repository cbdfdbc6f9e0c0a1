"""The facts that rules can use: their table, their values for a pod or node, trial inputs.

Names are CEL names: `pod.restarts10m`. An unknown fact is -1 or empty, never missing. Before a rule
is used it is evaluated on two trial inputs: one has every fact, the other no labels, no conditions
and only zeros.

Facts over a time window are not complete if the agent started recently. Until then they are 0 or
unknown, which does not show that a problem is over: a restored alert stays active until they are
complete.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from podstatus.alerts.model import Scope
from podstatus.alerts.rules.container_usage import NO_LOAD, ContainerLoad, PodLoad
from podstatus.alerts.rules.windows import WINDOW_NANOS, WindowCounts
from podstatus.kube.objects.pod import is_terminal_phase
from podstatus.kube.scalars.time import Time
from podstatus.observe.ports import Freshness, NodeSummary, SyncState, TaintSummary
from podstatus.observe.summary.container_state import ContainerStateSummary
from podstatus.observe.summary.health import (
    STUCK_DELETION_SECONDS,
    STUCK_PENDING_SECONDS,
    pod_health,
)
from podstatus.observe.summary.node_load import NodeLoad, ResourceLoad
from podstatus.observe.summary.pod import ContainerSummary, PodSummary

FactType = Literal[
    "string", "bool", "int", "double", "map(string, string)", "list(map(string, dyn))"
]
"""CEL type names."""


class Fact(msgspec.Struct, frozen=True):
    """A fact about a pod, a container, a node, or the status sync."""

    name: str
    kind: FactType
    meaning: str


POD_FACTS = (
    Fact("pod.name", "string", "Name of the pod."),
    Fact("pod.namespace", "string", "Namespace of the pod."),
    Fact("pod.uid", "string", "UID of the pod."),
    Fact("pod.node", "string", "Node that the pod is bound to; empty if none."),
    Fact("pod.labels", "map(string, string)", "Labels of the pod."),
    Fact("pod.phase", "string", "`Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`."),
    Fact("pod.reason", "string", "`status.reason`, such as `Evicted`; often empty."),
    Fact("pod.message", "string", "`status.message`, at most 512 characters."),
    Fact("pod.qos", "string", "`Guaranteed`, `Burstable` or `BestEffort`."),
    Fact("pod.static", "bool", "Whether it is a static pod, from a file or URL of the node."),
    Fact("pod.ready", "bool", "Whether the condition Ready is True."),
    Fact("pod.terminating", "bool", "Whether the pod has a deletion timestamp."),
    Fact("pod.overdue", "bool", "Whether the grace period of its deletion has expired."),
    Fact("pod.restarts", "int", "Number of container restarts, over all containers."),
    Fact("pod.health", "string", "Health, as in the column of `podstatus get pods -o wide`."),
    Fact("pod.conditions", "map(string, string)", "Status of each condition, by type."),
    Fact("pod.containers", "list(map(string, dyn))", "Containers, init containers first."),
    Fact("pod.readyChanges10m", "int", "Number of changes of the condition Ready in 10 minutes."),
    Fact("pod.restarts10m", "int", "Number of container restarts in 10 minutes."),
    Fact("pod.foreignWrites10m", "int", "Number of status writes by other clients in 10 minutes."),
)

CONTAINER_FACTS = (
    Fact("name", "string", "Name of the container."),
    Fact("kind", "string", "`container`, `init`, `sidecar` or `ephemeral`."),
    Fact("image", "string", "Image in the pod spec."),
    Fact("state", "string", "`running`, `waiting` or `terminated`; empty if unknown."),
    Fact("reason", "string", "Reason of its state: `CrashLoopBackOff`, `OOMKilled`."),
    Fact("exitCode", "int", "Exit code; -1 if it has not terminated."),
    Fact("message", "string", "Message of its state, at most 512 characters."),
    Fact("lastReason", "string", "Reason of the last termination; empty if there was none."),
    Fact("lastExitCode", "int", "Exit code of the last termination; -1 if there was none."),
    Fact("ready", "bool", "Whether it is ready."),
    Fact("started", "bool", "Whether it runs and its startup probe, if any, has succeeded."),
    Fact("restarts", "int", "Number of restarts."),
    Fact("created", "bool", "Whether the runtime has created it, now or before."),
    Fact(
        "memoryUsedFraction",
        "double",
        "Working set as a fraction of its memory limit; -1 also if there is no limit.",
    ),
    Fact(
        "cpuThrottledFraction",
        "double",
        "Fraction of the periods of its CPU limit in 5 minutes in which it was throttled; "
        "-1 also if there is no limit.",
    ),
)
"""Facts of each element of `pod.containers`."""

NODE_FACTS = (
    Fact("node.name", "string", "Name of the node."),
    Fact("node.ready", "bool", "Whether the condition Ready is True."),
    Fact("node.reason", "string", "Reason of the condition Ready, such as `KubeletNotReady`."),
    Fact("node.conditions", "map(string, string)", "Status of each condition, by type."),
    Fact("node.labels", "map(string, string)", "Labels of the node."),
    Fact("node.unschedulable", "bool", "Whether the node is cordoned."),
    Fact(
        "node.taints",
        "map(string, string)",
        "Effects of its taints, by key; several effects are separated by commas.",
    ),
    Fact("node.pods", "int", "Number of its pods that have not terminated."),
    Fact("node.leaseAgeSeconds", "int", "Seconds since its lease was renewed."),
    Fact(
        "node.cpuUsedFraction",
        "double",
        "Used fraction of its allocatable CPUs, from 0.0; it may exceed 1.0.",
    ),
    Fact("node.cpuUsedFraction5m", "double", "Moving average of this over 5 minutes."),
    Fact("node.cpuRequestedFraction", "double", "Fraction of them that its pods request."),
    Fact(
        "node.memoryUsedFraction",
        "double",
        "Used fraction of its allocatable memory, from 0.0; it may exceed 1.0.",
    ),
    Fact("node.memoryUsedFraction5m", "double", "Moving average of this over 5 minutes."),
    Fact("node.memoryRequestedFraction", "double", "Fraction of it that its pods request."),
    Fact("node.diskUsedFraction", "double", "Used fraction of the root directory's disk."),
    Fact("node.inodesUsedFraction", "double", "Used fraction of the inodes of that disk."),
    Fact("node.pidsUsedFraction", "double", "Used fraction of its process IDs."),
    Fact(
        "node.diskFullInSeconds",
        "int",
        "Seconds until that disk is full at the current rate; -1 also if never.",
    ),
    Fact(
        "node.clockSkewSeconds",
        "int",
        "Absolute difference of its clock to the API server's; 0 also if unknown.",
    ),
    Fact(
        "node.rulesOverBudget",
        "string",
        "Alert rules that were switched off because they exceeded their CPU or memory budget.",
    ),
)

SYNC_FACTS = (
    Fact("sync.unsent", "int", "Number of pods with a status that the API server has not got."),
    Fact("sync.oldestUnsentSeconds", "int", "Age of the oldest of these statuses."),
    Fact("sync.inFlight", "int", "Number of status updates in flight."),
    Fact("sync.quarantined", "int", "Number of pods whose status the API server rejects."),
    Fact("sync.outbox", "int", "Number of final statuses on disk that have not been delivered."),
    Fact("sync.serverReachable", "bool", "Whether the API server answers."),
    Fact("sync.serverAgeSeconds", "int", "Seconds since the last response of the API server."),
)
"""Facts that only an agent has; for an observer they are unknown."""

FACTS: dict[Scope, tuple[Fact, ...]] = {"pod": POD_FACTS, "node": NODE_FACTS + SYNC_FACTS}
"""The facts that rules of each scope can use."""


Facts = Mapping[str, Any]
"""Values by fact name: strings, bools, ints, floats, and maps and lists of these."""
UNKNOWN = -1
_SECOND = 1_000_000_000
_NO_COUNTS = WindowCounts()
_NO_LOADS: PodLoad = {}
_MAX_LISTED_RULES = 10
"""Rule names in the fact node.rulesOverBudget."""


def pod_facts(
    pod: PodSummary,
    now: int,
    counts: WindowCounts = _NO_COUNTS,
    load: PodLoad = _NO_LOADS,
) -> dict[str, Any]:
    """Return the facts of a pod at `now`."""
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
        "pod.health": pod_health(pod, Time.from_unix_nanos(now)).state.value,
        "pod.conditions": {condition.type: condition.status for condition in pod.conditions},
        "pod.containers": [
            container_facts(container, load.get(container.name, NO_LOAD))
            for container in pod.containers
        ],
        "pod.readyChanges10m": counts.ready_changes,
        "pod.restarts10m": counts.restarts,
        "pod.foreignWrites10m": counts.foreign_writes,
    }


def next_health_change(pod: PodSummary, now: int) -> int | None:
    """Return when a fact of a pod changes by time alone; None: never."""
    times = (at + 1 for at in _change_times(pod) if at >= now)
    return min(times, default=None)


def _change_times(pod: PodSummary) -> Iterable[int]:
    """Return the times after which its health or `pod.overdue` changes."""
    has_terminated = is_terminal_phase(pod.phase)
    if pod.deleting:
        until = pod.deleting.unix_nanos()
        return (until,) if has_terminated else (until, until + STUCK_DELETION_SECONDS * _SECOND)
    if pod.phase == "Pending" and (pod.started or pod.created):
        return ((pod.started or pod.created).unix_nanos() + STUCK_PENDING_SECONDS * _SECOND,)
    return ()


def container_facts(container: ContainerSummary, load: ContainerLoad = NO_LOAD) -> dict[str, Any]:
    state, last = container.state, container.last_state
    return {
        "name": container.name,
        "kind": container.kind,
        "image": container.image,
        "state": "" if state is None else state.state,
        "reason": "" if state is None else state.reason,
        "exitCode": _exit_code(state),
        "message": "" if state is None else state.message,
        "lastReason": "" if last is None else last.reason,
        "lastExitCode": _exit_code(last),
        "ready": container.ready,
        "started": container.started is True,
        "restarts": container.restarts,
        "created": container.created,
        "memoryUsedFraction": _fraction(load.memory_used_fraction),
        "cpuThrottledFraction": _fraction(load.cpu_throttled_fraction),
    }


def _exit_code(state: ContainerStateSummary | None) -> int:
    return UNKNOWN if state is None or state.exit_code is None else state.exit_code


def node_facts(
    node: NodeSummary, freshness: Freshness, over_budget: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the facts of a node; `over_budget`: rules that were switched off."""
    full = node.disk_full_in_seconds
    return {
        "node.name": node.name,
        "node.ready": node.ready,
        "node.reason": node.reason,
        "node.conditions": node.conditions,
        "node.labels": node.labels,
        "node.unschedulable": node.unschedulable,
        "node.taints": _taint_effects(node.taints),
        "node.pods": node.pods,
        "node.leaseAgeSeconds": _whole_seconds(node.lease_age_seconds),
        **{fact: _fraction(fraction(node.load)) for fact, fraction in _LOAD_FACTS.items()},
        "node.diskFullInSeconds": UNKNOWN if full is None else int(min(full, 2**62)),
        # An unknown skew is 0, so that it does not count as wrong.
        "node.clockSkewSeconds": int(freshness.clock_skew_seconds or 0),
        "node.rulesOverBudget": _format_rules(over_budget),
    }


def _taint_effects(taints: Iterable[TaintSummary]) -> dict[str, str]:
    effects: dict[str, str] = {}
    for taint in taints:
        before = effects.get(taint.key)
        effects[taint.key] = f"{before},{taint.effect}" if before else taint.effect
    return effects


def _format_rules(rules: Sequence[str]) -> str:
    more = len(rules) - _MAX_LISTED_RULES
    return ", ".join(rules[:_MAX_LISTED_RULES]) + (f" and {more} more" if more > 0 else "")


def sync_facts(sync: SyncState | None, freshness: Freshness) -> dict[str, Any]:
    """Return the facts of the status sync, which complement those of the node.

    None: unknown. An observer does not know whether a node reaches the API server, so the node
    counts as connected: other rules notice that it is not.
    """
    if sync is None:
        return dict(_UNKNOWN_SYNC)
    return {
        "sync.unsent": sync.unsent,
        "sync.oldestUnsentSeconds": _whole_seconds(sync.oldest_unsent_seconds),
        "sync.inFlight": sync.in_flight,
        "sync.quarantined": sync.quarantined,
        "sync.outbox": sync.outbox,
        "sync.serverReachable": freshness.server_reachable,
        "sync.serverAgeSeconds": _whole_seconds(freshness.server_age_seconds),
    }


_UNKNOWN_SYNC = {fact.name: UNKNOWN for fact in SYNC_FACTS} | {"sync.serverReachable": True}


def _whole_seconds(seconds: float | None) -> int:
    """Return whole seconds, for integer comparisons; not negative after a clock step backwards."""
    return UNKNOWN if seconds is None else max(0, int(seconds))


def _fraction(fraction: float | None) -> float:
    return float(UNKNOWN) if fraction is None else fraction


def _average_fraction(load: ResourceLoad) -> float | None:
    """The average over 5 minutes; None until all of them are measured."""
    average = load.complete_average("5m")
    return None if average is None else average.used_fraction


_LOAD_FACTS: Mapping[str, Callable[[NodeLoad], float | None]] = {
    "node.cpuUsedFraction": lambda load: load.cpu.used_fraction,
    "node.cpuUsedFraction5m": lambda load: _average_fraction(load.cpu),
    "node.cpuRequestedFraction": lambda load: load.cpu.requested_fraction,
    "node.memoryUsedFraction": lambda load: load.memory.used_fraction,
    "node.memoryUsedFraction5m": lambda load: _average_fraction(load.memory),
    "node.memoryRequestedFraction": lambda load: load.memory.requested_fraction,
    "node.diskUsedFraction": lambda load: load.disk.used_fraction,
    "node.inodesUsedFraction": lambda load: load.inodes.used_fraction,
    "node.pidsUsedFraction": lambda load: load.pids.used_fraction,
}


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
    """Return the trial inputs by their descriptions."""
    return {
        f"a {scope} with all facts": _trial_input(FACTS[scope], _FULL_VALUES),
        f"a {scope} with empty facts": _trial_input(FACTS[scope], _EMPTY_VALUES),
    }


def _trial_input(facts: tuple[Fact, ...], values: dict[str, Any]) -> dict[str, Any]:
    container = {fact.name: values[fact.kind] for fact in CONTAINER_FACTS}
    return {fact.name: values.get(fact.kind, [container]) for fact in facts}


POD_WINDOW_FACTS = frozenset(("pod.readyChanges10m", "pod.restarts10m", "pod.foreignWrites10m"))
"""Incomplete until a pod has been watched for the length of the window."""
MEMORY_FACT, THROTTLING_FACT = "memoryUsedFraction", "cpuThrottledFraction"
"""Facts of containers that are incomplete until usage was measured, for a window."""
_SERVER_AGE = "sync.serverAgeSeconds"
_SEND_FACTS = frozenset(fact.name for fact in SYNC_FACTS) - {"sync.serverReachable", _SERVER_AGE}
_FIRST_SYNC_NANOS = 60 * 1_000_000_000
"""By then every status has been compared with the API server's copy, and sent."""


def warming_up_node_facts(
    node: NodeSummary, sync: SyncState | None, knowledge: Freshness, watched: int
) -> frozenset[str]:
    """Return the incomplete facts of a node that has been watched for `watched` nanoseconds."""
    warming_up: set[str] = set()
    # Known as soon as the API server has answered, however long that takes.
    if node.lease_age_seconds is None:
        warming_up.add("node.leaseAgeSeconds")
    if knowledge.clock_skew_seconds is None:
        warming_up.add("node.clockSkewSeconds")
    if watched < WINDOW_NANOS:
        warming_up.add("node.diskFullInSeconds")
        warming_up.update(
            fact for fact, fraction in _LOAD_FACTS.items() if fraction(node.load) is None
        )
        if not knowledge.server_reachable:
            warming_up.add(_SERVER_AGE)
    if sync is not None and watched < (WINDOW_NANOS if sync.unsent else _FIRST_SYNC_NANOS):
        warming_up |= _SEND_FACTS
    return frozenset(warming_up)
