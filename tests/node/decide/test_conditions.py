"""Node conditions, and the events of their changes."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from podstatus.kube.objects.node import NodeCondition
from podstatus.kube.scalars.time import Time
from podstatus.node.decide.conditions import (
    AGENT_STOPPED,
    ALERT_CONDITION_PREFIX,
    AlertCondition,
    NodeConditionsUpdate,
    aggregate,
    is_ready,
    update_conditions,
    with_agent_stopped,
)

BEFORE, NOW = Time.parse("2024-01-31T09:30:00Z"), Time.parse("2024-01-31T09:30:10Z")
FOREIGN = NodeCondition(
    type="KernelDeadlock", status="False", reason="KernelHasNoDeadlock", message="m"
)
PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")


def update(
    known: Sequence[NodeCondition] = (),
    *,
    pressures: Sequence[str] = (),
    problems: Sequence[str] = (),
    now: Time = NOW,
    stated: Sequence[AlertCondition] = (),
) -> NodeConditionsUpdate:
    return update_conditions(
        "node-c",
        known,
        pressures=frozenset(pressures),
        problems=problems,
        now=now,
        alert_conditions=stated,
    )


def reasons(conditions: NodeConditionsUpdate) -> list[str]:
    return [event.reason for event in conditions.events]


def find(conditions: NodeConditionsUpdate, kind: str) -> NodeCondition:
    return next(it for it in conditions.items if it.type == kind)


@pytest.mark.parametrize(
    ("kind", "under", "reason", "message", "event"),
    [
        (
            "MemoryPressure",
            False,
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
            "NodeHasSufficientMemory",
        ),
        (
            "MemoryPressure",
            True,
            "KubeletHasInsufficientMemory",
            "kubelet has insufficient memory available",
            "NodeHasInsufficientMemory",
        ),
        (
            "DiskPressure",
            False,
            "KubeletHasNoDiskPressure",
            "kubelet has no disk pressure",
            "NodeHasNoDiskPressure",
        ),
        (
            "DiskPressure",
            True,
            "KubeletHasDiskPressure",
            "kubelet has disk pressure",
            "NodeHasDiskPressure",
        ),
        (
            "PIDPressure",
            False,
            "KubeletHasSufficientPID",
            "kubelet has sufficient PID available",
            "NodeHasSufficientPID",
        ),
        (
            "PIDPressure",
            True,
            "KubeletHasInsufficientPID",
            "kubelet has insufficient PID available",
            "NodeHasInsufficientPID",
        ),
    ],
)
def test_a_pressure_has_upstreams_reason_and_message(
    kind: str, under: bool, reason: str, message: str, event: str
) -> None:
    updated = update(pressures=[kind] if under else [])
    condition = find(updated, kind)
    assert (condition.status, condition.reason, condition.message) == (
        str(under),
        reason,
        message,
    )
    assert (event, f"Node node-c status is now: {event}") in [
        (event.reason, event.message) for event in updated.events
    ]


def test_a_new_node_has_all_conditions_and_tells_of_the_pressures_alone() -> None:
    updated = update()
    assert [it.type for it in updated.items] == [*PRESSURES, "Ready"]
    assert reasons(updated) == [
        "NodeHasSufficientMemory",
        "NodeHasNoDiskPressure",
        "NodeHasSufficientPID",
    ]
    assert {it.last_transition_time for it in updated.items} == {NOW}


@pytest.mark.parametrize(
    ("problems", "status", "reason", "message"),
    [
        ([], "True", "KubeletReady", "kubelet is posting ready status"),
        (["a"], "False", "KubeletNotReady", "a"),
        (["a", "b"], "False", "KubeletNotReady", "[a, b]"),
        (["a", "a"], "False", "KubeletNotReady", "a"),
        (["a", "b", "a"], "False", "KubeletNotReady", "[a, b]"),
    ],
)
def test_ready_says_why_not(problems: list[str], status: str, reason: str, message: str) -> None:
    ready = find(update(problems=problems), "Ready")
    assert (ready.status, ready.reason, ready.message) == (status, reason, message)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([], ["p"], ["NodeNotReady"]),
        (["p"], [], ["NodeReady"]),
        (["p"], ["q"], []),
        ([], [], []),
    ],
)
def test_ready_has_an_event_when_its_status_changes(
    before: list[str], after: list[str], expected: list[str]
) -> None:
    known = update(problems=before, now=BEFORE).items
    updated = update(known, problems=after)
    assert reasons(updated) == expected
    ready = find(updated, "Ready")
    assert ready.last_transition_time == (NOW if expected else BEFORE)
    assert ready.last_heartbeat_time == NOW
    assert ready.message == (aggregate(after) if after else "kubelet is posting ready status")


def test_what_the_control_plane_did_not_know_is_made_known_again() -> None:
    known = [
        structs.replace(it, status="Unknown", reason="NodeStatusUnknown") for it in update().items
    ]
    updated = update(known)
    assert [it.status for it in updated.items] == ["False", "False", "False", "True"]
    assert find(updated, "MemoryPressure").reason == "KubeletHasSufficientMemory"
    assert reasons(updated)[-1] == "NodeReady"


def test_conditions_of_others_stay_where_they_are() -> None:
    updated = update([FOREIGN])
    assert updated.items[0] == FOREIGN
    assert update(updated.items).items[0] == FOREIGN


def test_a_pressure_keeps_the_words_of_who_said_the_same_before() -> None:
    known = NodeCondition(
        type="DiskPressure",
        status="False",
        reason="Other",
        message="m",
        last_transition_time=BEFORE,
    )
    kept = find(update([known]), "DiskPressure")
    assert kept == structs.replace(known, last_heartbeat_time=NOW)


@given(
    st.lists(st.sets(st.sampled_from(PRESSURES)), min_size=1, max_size=6),
    st.lists(st.lists(st.sampled_from(["a", "b"]), max_size=2), min_size=1, max_size=6),
)
def test_a_transition_has_a_new_time_an_event_and_nothing_else_has(
    pressures: list[set[str]], problems: list[list[str]]
) -> None:
    known: tuple[NodeCondition, ...] = update(now=BEFORE).items
    for step, (under, wrong) in enumerate(zip(pressures, problems, strict=False), 1):
        now = Time(BEFORE + step * 10**10)
        updated = update(known, pressures=sorted(under), problems=wrong, now=now)
        changed = [
            new for old, new in zip(known, updated.items, strict=True) if old.status != new.status
        ]
        assert len(updated.events) == len(changed)
        assert all((it in changed) == (it.last_transition_time == now) for it in updated.items)
        assert is_ready(updated.items) == (not wrong)
        known = updated.items


FULL = AlertCondition(
    type=f"{ALERT_CONDITION_PREFIX}DiskFilling", reason="DiskFilling", message="in 2 h"
)


def stated(conditions: NodeConditionsUpdate) -> list[NodeCondition]:
    return [it for it in conditions.items if it.type.startswith(ALERT_CONDITION_PREFIX)]


def test_what_is_stated_is_true_until_it_is_not() -> None:
    first = update([FOREIGN], stated=[FULL], now=BEFORE)
    (shown,) = stated(first)
    assert (shown.status, shown.reason, shown.message) == ("True", "DiskFilling", "in 2 h")
    again = update(first.items, stated=[structs.replace(FULL, message="in 1 h")])
    (shown,) = stated(again)
    assert (shown.message, shown.last_transition_time) == ("in 1 h", BEFORE)
    after = update(again.items, stated=[])
    assert stated(after) == []
    assert FOREIGN in after.items


def test_the_condition_of_a_stop_is_added_once_and_removed_by_the_next_update() -> None:
    running = update([FOREIGN]).items
    stopped = with_agent_stopped(running, "it was stopped", NOW)
    assert stopped[:-1] == running
    assert stopped[-1] == NodeCondition(
        type=AGENT_STOPPED,
        status="True",
        last_heartbeat_time=NOW,
        last_transition_time=NOW,
        reason="StopRequested",
        message="it was stopped",
    )
    assert len(with_agent_stopped(stopped, "again", NOW)) == len(stopped)
    assert update(stopped).items == running
