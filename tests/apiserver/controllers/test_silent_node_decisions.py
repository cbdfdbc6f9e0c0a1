"""The decisions about silent nodes, as tables."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.apiserver.controllers.decide.monitored_node import monitored_node
from podstatus.apiserver.controllers.decide.node_taints import (
    NOT_READY,
    UNREACHABLE,
    no_execute_key,
    no_execute_keys,
    with_no_execute,
)
from podstatus.apiserver.controllers.decide.pod_gc import (
    PodPlace,
    is_abandoned,
    is_orphan,
    quarantine,
)
from podstatus.apiserver.controllers.decide.pod_status import mark_failed, mark_not_ready
from podstatus.apiserver.controllers.decide.policy import NodeMonitorPolicy
from podstatus.apiserver.controllers.decide.taint_eviction import (
    EvictAt,
    EvictionDecision,
    NoEviction,
    ScheduledAlready,
    decide_eviction,
)
from podstatus.apiserver.controllers.decide.zones import (
    ClusterTransition,
    ZoneLimiter,
    ZoneState,
    decide_disruption,
    zone_state,
)
from podstatus.apiserver.strategies.base import Document
from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.node import Node, Taint
from podstatus.kube.objects.pod_spec import Toleration
from podstatus.kube.scalars.time import Time

NOW = Time.parse("2026-11-15T10:00:00Z")
SECOND = 10**9
POLICY = NodeMonitorPolicy()
INITIAL, NORMAL, PARTIAL, FULL = ZoneState


def taints(text: str) -> tuple[Taint, ...]:
    return tuple(Taint(key=key, effect="NoExecute") for key in text.split())


def tolerations(text: str) -> list[Toleration]:
    """`key:seconds`, or `key` for ever."""
    found = []
    for word in text.split():
        key, _, seconds = word.partition(":")
        found.append(
            Toleration(
                key=key.replace("*", ""),
                operator="Exists",
                toleration_seconds=int(seconds) if seconds else None,
            )
        )
    return found


@pytest.mark.parametrize(
    ("node", "pod", "scheduled", "expected"),
    [
        ("a", "", False, EvictAt(0)),
        ("a", "", True, EvictAt(0)),
        ("a", "b:5", False, EvictAt(0)),
        ("a b", "a:5", True, EvictAt(0)),
        ("a", "a", False, NoEviction()),
        ("a", "a", True, NoEviction()),
        ("a", "a:5", False, EvictAt(5 * SECOND)),
        ("a", "a:5", True, ScheduledAlready()),
        ("a", "a:0", False, EvictAt(0)),
        ("a", "a:-3", False, EvictAt(0)),
        ("a b", "a:7 b:5", False, EvictAt(5 * SECOND)),
        ("a b", "a b:5", False, EvictAt(5 * SECOND)),
        # Only the first toleration that matches a taint counts.
        ("a", "*:9 a:5", False, EvictAt(9 * SECOND)),
        ("a", "* a:5", False, NoEviction()),
    ],
)
def test_a_pod_is_evicted_when_no_toleration_holds_any_longer(
    node: str, pod: str, *, scheduled: bool, expected: EvictionDecision
) -> None:
    assert decide_eviction(taints(node), tolerations(pod), 0, is_scheduled=scheduled) == expected


@pytest.mark.parametrize(
    ("ready", "unready", "expected"),
    [
        (0, 0, NORMAL),
        (1, 0, NORMAL),
        (0, 1, FULL),
        (0, 9, FULL),
        (1, 1, NORMAL),
        (1, 2, NORMAL),
        (1, 3, PARTIAL),
        (3, 3, NORMAL),
        (45, 55, PARTIAL),
        (46, 54, NORMAL),
    ],
)
def test_the_state_of_a_zone(ready: int, unready: int, expected: ZoneState) -> None:
    assert zone_state([True] * ready + [False] * unready, POLICY) is expected


def nodes(ready: int, unready: int) -> Sequence[bool]:
    return [True] * ready + [False] * unready


A, B = ("", "a"), ("", "b")


@pytest.mark.parametrize(
    ("before", "ready", "rates", "transition"),
    [
        ({}, {}, {}, ClusterTransition.NONE),
        ({}, {A: nodes(1, 0)}, {A: 0.1}, ClusterTransition.NONE),
        ({}, {A: nodes(0, 1)}, {A: 0.0}, ClusterTransition.ENTERED_FULL_DISRUPTION),
        ({A: NORMAL}, {A: nodes(1, 1)}, {}, ClusterTransition.NONE),
        ({A: NORMAL}, {A: nodes(0, 2)}, {A: 0.0}, ClusterTransition.ENTERED_FULL_DISRUPTION),
        ({A: FULL}, {A: nodes(0, 2)}, {}, ClusterTransition.NONE),
        ({A: FULL}, {A: nodes(1, 1)}, {A: 0.1}, ClusterTransition.LEFT_FULL_DISRUPTION),
        ({A: NORMAL}, {A: nodes(1, 3)}, {A: 0.0}, ClusterTransition.NONE),
        ({A: NORMAL}, {A: nodes(10, 50)}, {A: 0.01}, ClusterTransition.NONE),
        ({A: PARTIAL}, {A: nodes(3, 3)}, {A: 0.1}, ClusterTransition.NONE),
        # A whole zone is gone, the cluster is not: its nodes are tainted.
        (
            {A: NORMAL, B: NORMAL},
            {A: nodes(0, 9), B: nodes(1, 0)},
            {A: 0.1},
            ClusterTransition.NONE,
        ),
        (
            {A: FULL, B: NORMAL},
            {A: nodes(0, 9), B: nodes(0, 1)},
            {A: 0.0, B: 0.0},
            ClusterTransition.ENTERED_FULL_DISRUPTION,
        ),
        (
            {A: FULL, B: FULL},
            {A: nodes(0, 9), B: nodes(1, 0)},
            {A: 0.1, B: 0.1},
            ClusterTransition.LEFT_FULL_DISRUPTION,
        ),
    ],
)
def test_the_rates_of_zones(
    before: dict[tuple[str, str], ZoneState],
    ready: dict[tuple[str, str], Sequence[bool]],
    rates: dict[tuple[str, str], float],
    transition: ClusterTransition,
) -> None:
    decided = decide_disruption(before, ready, POLICY)
    assert (decided.rates, decided.transition) == (rates, transition)
    assert set(decided.states) == set(ready)


@given(st.lists(st.booleans(), min_size=1, max_size=80))
def test_a_state_that_lasts_changes_no_rate(ready: list[bool]) -> None:
    first = decide_disruption({}, {A: ready}, POLICY)
    second = decide_disruption(first.states, {A: ready}, POLICY)
    assert (second.rates, second.transition) == ({}, ClusterTransition.NONE)


def test_a_changed_rate_does_not_give_a_node_for_free() -> None:
    limiter, allowed = ZoneLimiter.at_rate(0.1).try_acquire(0)
    assert allowed
    faster = limiter.with_rate(1.0, SECOND)
    assert [faster.try_acquire(at * SECOND)[1] for at in (1, 2)] == [False, True]
    none = faster.with_rate(0.0, SECOND)
    assert not none.try_acquire(10**6 * SECOND)[1]
    again = none.with_rate(0.1, 10 * SECOND)
    assert [again.try_acquire(at * SECOND)[1] for at in (19, 20)] == [False, True]


OWN = Taint(key="own", effect="NoExecute")
SOFT = Taint(key=NOT_READY, effect="NoSchedule")


@pytest.mark.parametrize(
    ("before", "ready", "after"),
    [
        ("", "True", ""),
        ("", "False", NOT_READY),
        ("", "Unknown", UNREACHABLE),
        (NOT_READY, "Unknown", UNREACHABLE),
        (UNREACHABLE, "False", NOT_READY),
        (UNREACHABLE, "True", ""),
        (f"{UNREACHABLE} {NOT_READY}", "True", ""),
        (f"{UNREACHABLE} {NOT_READY}", "False", NOT_READY),
    ],
)
def test_a_node_has_the_no_execute_taint_of_its_readiness(
    before: str, ready: str, after: str
) -> None:
    found = with_no_execute((OWN, SOFT, *taints(before)), no_execute_key(ready), NOW)
    assert no_execute_keys(found) == set(after.split())
    assert found[:2] == (OWN, SOFT)
    added = [taint.time_added for taint in found[2:]]
    assert added == ([] if not after else [None if after in before.split() else NOW])


def test_a_missing_node_is_in_quarantine_until_it_is_there_again() -> None:
    missing = quarantine({}, ["a", "b", ""], ["b"], 0)
    assert missing == {"a": 0}
    later = quarantine(missing, ["a"], [], 40 * SECOND)
    pod = PodPlace(node="a", terminating=False)
    assert [is_orphan(pod, later, at * SECOND) for at in (39, 40)] == [False, True]
    assert quarantine(later, ["a"], ["a"], 50 * SECOND) == {}
    assert not is_orphan(PodPlace(node="", terminating=True), later, 99 * SECOND)


@pytest.mark.parametrize(
    ("node", "terminating", "expected"),
    [
        ("", True, True),
        ("", False, False),
        ("a", True, False),
        ("b", True, True),
        ("b", False, False),
    ],
)
def test_a_terminating_pod_needs_a_node(node: str, *, terminating: bool, expected: bool) -> None:
    assert is_abandoned(PodPlace(node=node, terminating=terminating), {"b"}) is expected


def pod(phase: str = "Running", **conditions: str) -> Document:
    found = [{"type": kind, "status": status} for kind, status in conditions.items()]
    return {"metadata": {"generation": 3}, "status": {"phase": phase, "conditions": found}}


@pytest.mark.parametrize("same", [pod(), pod(Ready="False"), pod(ContainersReady="True")])
def test_only_a_ready_pod_becomes_not_ready(same: Document) -> None:
    assert mark_not_ready(same, NOW) is same


def test_a_pod_keeps_what_is_not_about_its_readiness() -> None:
    before = pod(Own="True", Ready="True", ContainersReady="True")
    before["status"]["conditions"][1] |= {"reason": "R", "message": "m"}
    after = mark_not_ready(before, NOW)["status"]["conditions"]
    ready = {"type": "Ready", "status": "False", "reason": "R", "message": "m"}
    assert after == [
        {"type": "Own", "status": "True"},
        ready | {"lastTransitionTime": NOW.wire},
        {"type": "ContainersReady", "status": "True"},
    ]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_stays_as_it_ended(phase: str) -> None:
    assert mark_failed(pod(phase), NOW, orphaned=True) == pod(phase)


@pytest.mark.parametrize(("orphaned", "conditions"), [(True, ["DisruptionTarget"]), (False, [])])
def test_a_pod_without_a_node_has_failed(*, orphaned: bool, conditions: list[str]) -> None:
    status = mark_failed(pod("Pending"), NOW, orphaned=orphaned)["status"]
    assert (status["phase"], status["observedGeneration"]) == ("Failed", 3)
    assert [it["type"] for it in status["conditions"]] == conditions


@pytest.mark.parametrize(
    ("labels", "zone"),
    [
        ({}, ("", "")),
        ({"topology.kubernetes.io/zone": "z"}, ("", "z")),
        ({"topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": "z"}, ("r", "z")),
        ({"failure-domain.beta.kubernetes.io/zone": "old"}, ("", "old")),
    ],
)
def test_the_zone_of_a_node_is_in_its_labels(labels: dict[str, str], zone: tuple[str, str]) -> None:
    node = from_document({"metadata": {"name": "n", "labels": labels}}, Node)
    assert monitored_node(node).zone == zone
