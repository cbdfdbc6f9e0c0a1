"""Transitions between two statuses, one row each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from podstatus import PodStatus
from podstatus.kube.objects.pod_status import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    PodCondition,
)
from podstatus.observe.transitions.compare_statuses import Transition, status_transitions

RUNNING = ContainerState(running=ContainerStateRunning())
CREATING = ContainerState(waiting=ContainerStateWaiting(reason="ContainerCreating"))

BACK_OFF = ContainerState(waiting=ContainerStateWaiting(reason="CrashLoopBackOff"))


def failed(code: int = 3) -> ContainerState:
    return ContainerState(terminated=ContainerStateTerminated(exit_code=code, reason="Error"))


def app(state: ContainerState, *, last: ContainerState | None = None, **more: object) -> PodStatus:
    status = ContainerStatus(name="app", state=state, **more)  # type: ignore[arg-type]
    if last is not None:
        status = structs.replace(status, last_state=last)
    return PodStatus(container_statuses=(status,))


def ready(status: str, reason: str = "") -> PodStatus:
    return PodStatus(conditions=(PodCondition(type="Ready", status=status, reason=reason),))


def fields(found: list[Transition]) -> list[tuple[str, ...]]:
    return [(t.kind, t.subject, t.before_text, t.after_text) for t in found]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (PodStatus(phase="Pending"), PodStatus(phase="Pending"), []),
        (None, PodStatus(phase="Pending"), [("phase", "", "", "Pending")]),
        (
            PodStatus(phase="Pending"),
            PodStatus(phase="Running"),
            [("phase", "", "Pending", "Running")],
        ),
        (
            app(CREATING),
            app(RUNNING, ready=True),
            [
                ("container", "app", "waiting ContainerCreating", "running"),
                ("readiness", "app", "False", "True"),
            ],
        ),
        (app(RUNNING), app(failed(3)), [("container", "app", "running", "terminated Error 3")]),
        (ready("False", "A"), ready("True"), [("condition", "Ready", "False", "True")]),
        (ready("False", "A"), ready("False", "B"), [("condition", "Ready", "False", "False")]),
        (ready("True"), PodStatus(), [("condition", "Ready", "True", "")]),
    ],
)
def test_each_change_is_a_row(
    old: PodStatus | None, new: PodStatus, expected: list[tuple[str, ...]]
) -> None:
    assert fields(status_transitions(old, new)) == expected


def test_container_that_ended_and_runs_again_has_both_though_only_one_was_shown() -> None:
    new = app(RUNNING, last=failed(7), restart_count=1)
    assert fields(status_transitions(app(RUNNING), new)) == [
        ("container", "app", "running", "terminated Error 7"),
        ("restart", "app", "0", "1"),
        ("container", "app", "terminated Error 7", "running"),
    ]


def test_termination_is_not_reported_twice() -> None:
    new = app(RUNNING, last=failed(7), restart_count=1)
    assert fields(status_transitions(app(failed(7)), new)) == [
        ("restart", "app", "0", "1"),
        ("container", "app", "terminated Error 7", "running"),
    ]


def test_unseen_termination_before_a_back_off_is_reported() -> None:
    waits = app(BACK_OFF, last=failed(137))
    assert fields(status_transitions(app(RUNNING), waits)) == [
        ("container", "app", "running", "terminated Error 137"),
        ("container", "app", "terminated Error 137", "waiting CrashLoopBackOff"),
    ]
    again = app(RUNNING, last=failed(137), restart_count=1)
    assert fields(status_transitions(waits, again)) == [
        ("restart", "app", "0", "1"),
        ("container", "app", "waiting CrashLoopBackOff", "running"),
    ]


def test_termination_has_its_reason_and_message() -> None:
    ended = ContainerStateTerminated(exit_code=1, reason="OOMKilled", message="too much")
    (found,) = status_transitions(app(RUNNING), app(ContainerState(terminated=ended)))
    assert (found.reason, found.message) == ("OOMKilled", "too much")


STATES = st.sampled_from([CREATING, RUNNING, failed(1), failed(2), ContainerState()])


@given(st.lists(STATES, min_size=1, max_size=6))
def test_changes_one_after_the_other_lead_from_the_first_state_to_the_last(
    states: list[ContainerState],
) -> None:
    seen, old = "", None
    for state in states:
        new = app(state)
        for found in status_transitions(old, new):
            assert found.before_text == seen
            seen = found.after_text
        old = new
    assert not status_transitions(old, app(states[-1]))
