"""Fact values, and that every fact of the table exists."""

from itertools import pairwise
from typing import Any

import pytest

from podstatus.alerts.cel.compile_expression import Environment
from podstatus.alerts.evaluator.ports import RuleFailed
from podstatus.alerts.rules.fact_variables import (
    CONTAINER_FACTS,
    NODE_FACTS,
    POD_FACTS,
    SYNC_FACTS,
    next_health_change,
    node_facts,
    pod_facts,
    sync_facts,
)
from podstatus.alerts.rules.windows import WindowCounts
from podstatus.kube.objects.node import Node, NodeSpec, Taint
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.time import Time
from podstatus.observe.ports import Freshness, NodeSummary, SyncState
from podstatus.observe.summary.container_state import (
    ContainerStateSummary,
    parse_container_state,
)
from podstatus.observe.summary.node import summarize_node
from podstatus.observe.summary.node_load import LoadAverage, NodeLoad, ResourceLoad
from podstatus.observe.summary.pod import ConditionSummary, ContainerSummary, PodSummary

SECOND = 1_000_000_000
AT = 1_700_000_000 * SECOND
NOW = Time.from_unix_nanos(AT)
WEB = PodSummary(uid=PodUID("1"), namespace="default", name="web")


def crashing(**more: Any) -> ContainerSummary:
    state = ContainerStateSummary(state="waiting", reason="CrashLoopBackOff", message="back-off")
    last = parse_container_state("terminated OOMKilled 137")
    return ContainerSummary(name="app", state=state, last_state=last, **more)


@pytest.mark.parametrize(
    ("facts", "table"),
    [
        (pod_facts(WEB, AT), POD_FACTS),
        (node_facts(NodeSummary(name="n"), Freshness()), NODE_FACTS),
        (sync_facts(SyncState(), Freshness()), SYNC_FACTS),
    ],
)
def test_facts_are_those_of_the_table(facts: dict[str, Any], table: Any) -> None:
    assert list(facts) == [fact.name for fact in table]


@pytest.mark.parametrize("scope", ["pod", "node"])
def test_facts_have_the_types_of_the_table(scope: Any) -> None:
    """CEL fails on a value of another type."""
    pod = PodSummary(
        uid=PodUID("1"), namespace="ns", name="p", labels={"a": "b"}, containers=(crashing(),),
        conditions=(ConditionSummary(type="Ready", status="True"),),
    )  # fmt: skip
    facts = (
        pod_facts(pod, AT)
        if scope == "pod"
        else node_facts(NodeSummary(name="n"), Freshness()) | sync_facts(SyncState(), Freshness())
    )
    environment = Environment.for_scope(scope)
    asked = environment.activation(facts)
    failed = {name: environment.compile(name).value(asked) for name in facts}
    assert [name for name, value in failed.items() if isinstance(value, RuleFailed)] == []


def test_a_pod_in_a_crash_loop() -> None:
    pod = PodSummary(
        uid=PodUID("1"), namespace="default", name="web", node="n1", phase="Running",
        containers=(crashing(restarts=4, created=True),), deleting=NOW,
        conditions=(ConditionSummary(type="Ready", status="False"),),
    )  # fmt: skip
    counts = WindowCounts(ready_changes=2, restarts=3, foreign_writes=1)
    facts = pod_facts(pod, AT, counts)
    assert (facts["pod.ready"], facts["pod.terminating"], facts["pod.restarts"]) == (False, True, 4)
    assert (facts["pod.health"], facts["pod.conditions"]) == ("ending", {"Ready": "False"})
    assert (facts["pod.readyChanges10m"], facts["pod.restarts10m"]) == (2, 3)
    assert facts["pod.foreignWrites10m"] == 1
    [container] = facts["pod.containers"]
    assert list(container) == [fact.name for fact in CONTAINER_FACTS]
    assert container == {
        "name": "app", "kind": "container", "image": "", "state": "waiting",
        "reason": "CrashLoopBackOff", "exitCode": -1, "message": "back-off",
        "lastReason": "OOMKilled", "lastExitCode": 137, "ready": False, "started": False,
        "restarts": 4, "created": True,
        "memoryUsedFraction": -1.0, "cpuThrottledFraction": -1.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("state", "parts"),
    [
        ("", ("", "", -1)),
        ("running", ("running", "", -1)),
        ("waiting", ("waiting", "", -1)),
        ("waiting ImagePullBackOff", ("waiting", "ImagePullBackOff", -1)),
        ("terminated Completed 0", ("terminated", "Completed", 0)),
        ("terminated 3", ("terminated", "", 3)),
        ("terminated two words -1", ("terminated", "two words", -1)),
    ],
)
def test_a_state_is_split_into_its_parts(state: str, parts: tuple[str, str, int]) -> None:
    pod = PodSummary(
        uid=PodUID("1"),
        namespace="",
        name="",
        containers=(ContainerSummary(name="c", state=parse_container_state(state)),),
    )
    [container] = pod_facts(pod, AT)["pod.containers"]
    assert (container["state"], container["reason"], container["exitCode"]) == parts


def test_a_node() -> None:
    averages = {
        "5m": LoadAverage(used=2.0, used_fraction=0.5, covered_seconds=300.0),
        "15m": LoadAverage(used=1.2, used_fraction=0.3, covered_seconds=301.0),
    }
    load = NodeLoad(
        cpu=ResourceLoad(used_fraction=0.25, requested_fraction=0.75, averages=averages),
        memory=ResourceLoad(used_fraction=1.1, requested_fraction=0.6),
        disk=ResourceLoad(used_fraction=0.9),
        inodes=ResourceLoad(used_fraction=0.8),
        pids=ResourceLoad(used_fraction=0.1),
    )
    node = NodeSummary(name="n1", ready=True, pods=3, load=load, lease_age_seconds=12.7)
    facts = node_facts(node, Freshness(clock_skew_seconds=3.2))
    assert (facts["node.cpuUsedFraction"], facts["node.memoryUsedFraction"]) == (0.25, 1.1)
    assert (facts["node.cpuUsedFraction5m"], facts["node.memoryUsedFraction5m"]) == (0.5, -1.0)
    requested = facts["node.cpuRequestedFraction"], facts["node.memoryRequestedFraction"]
    assert requested == (0.75, 0.6)
    assert (facts["node.inodesUsedFraction"], facts["node.pidsUsedFraction"]) == (0.8, 0.1)
    assert (facts["node.leaseAgeSeconds"], facts["node.pods"]) == (12, 3)
    assert (facts["node.diskUsedFraction"], facts["node.clockSkewSeconds"]) == (0.9, 3)


def test_an_average_is_known_when_its_whole_window_is_measured() -> None:
    part = LoadAverage(used=2.0, used_fraction=0.5, covered_seconds=299.9)
    load = NodeLoad(cpu=ResourceLoad(averages={"5m": part}))
    facts = node_facts(NodeSummary(name="n", load=load), Freshness())
    assert facts["node.cpuUsedFraction5m"] == -1.0


def test_what_is_not_known_of_a_node_is_less_than_nothing() -> None:
    facts = node_facts(NodeSummary(name="n"), Freshness())
    numbers = {name: value for name, value in facts.items() if type(value) in (int, float)}
    assert numbers == {
        "node.pods": 0, "node.leaseAgeSeconds": -1, "node.cpuUsedFraction": -1.0,
        "node.cpuUsedFraction5m": -1.0, "node.cpuRequestedFraction": -1.0,
        "node.memoryUsedFraction": -1.0, "node.memoryUsedFraction5m": -1.0,
        "node.memoryRequestedFraction": -1.0, "node.diskUsedFraction": -1.0,
        "node.inodesUsedFraction": -1.0, "node.pidsUsedFraction": -1.0,
        "node.diskFullInSeconds": -1, "node.clockSkewSeconds": 0,
    }  # fmt: skip


def test_an_observer_does_not_know_how_statuses_are_sent() -> None:
    facts = sync_facts(None, Freshness(server_reachable=False, server_age_seconds=90.0))
    assert facts.pop("sync.serverReachable")
    assert set(facts.values()) == {-1}
    assert {*facts, "sync.serverReachable"} == {fact.name for fact in SYNC_FACTS}


def test_a_cordoned_node_with_taints() -> None:
    taints = (
        Taint(key="gpu", value="a100", effect="NoSchedule"),
        Taint(key="node.kubernetes.io/unreachable", effect="NoSchedule"),
        Taint(key="node.kubernetes.io/unreachable", effect="NoExecute"),
    )
    node = Node(spec=NodeSpec(unschedulable=True, taints=taints))
    facts = node_facts(summarize_node(node, pods=0, requested={}), Freshness())
    assert facts["node.unschedulable"]
    assert facts["node.taints"] == {
        "gpu": "NoSchedule",
        "node.kubernetes.io/unreachable": "NoSchedule,NoExecute",
    }


def like(**more: Any) -> PodSummary:
    return PodSummary(uid=PodUID("1"), namespace="", name="", **more)


@pytest.mark.parametrize(
    ("pod", "changes"),
    [
        (
            like(phase="Running", deleting=NOW),
            [("ending", False), ("ending", True), ("stuck", True)],
        ),
        (like(phase="Failed", deleting=NOW), [("failed", False), ("failed", True)]),
        (like(phase="Pending", created=NOW), [("starting", False), ("stuck", False)]),
    ],
)
def test_facts_become_others_exactly_when_they_are_said_to(
    pod: PodSummary, changes: list[tuple[str, bool]]
) -> None:
    def health_at(at: int) -> tuple[str, bool]:
        facts = pod_facts(pod, at)
        return facts["pod.health"], facts["pod.overdue"]

    at = AT
    assert health_at(at) == changes[0]
    for before, after in pairwise(changes):
        moves = next_health_change(pod, at)
        assert moves is not None
        assert (health_at(moves - 1), health_at(moves)) == (before, after)
        at = moves
    assert next_health_change(pod, at) is None


@pytest.mark.parametrize("phase", ["Running", "Succeeded", "Failed"])
def test_health_of_others_stays(phase: str) -> None:
    pod = PodSummary(uid=PodUID("1"), namespace="", name="", phase=phase, created=NOW)
    assert next_health_change(pod, AT) is None
