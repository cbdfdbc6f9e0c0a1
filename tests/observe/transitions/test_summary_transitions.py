"""Transitions of summaries equal those of the statuses they are made of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from podstatus import PodStatus
from podstatus.kube.objects.pod_status import ContainerState, ContainerStatus
from podstatus.kube.scalars.time import Time
from podstatus.observe.summary.pod import PodSummary, summarize_pod
from podstatus.observe.transitions.status_transitions import Transition, status_transitions
from podstatus.observe.transitions.summary_transitions import summary_transitions
from podstatus.testing.builders import ended, make_pod, make_status, running, waiting

BACK_OFF = "CrashLoopBackOff"
ENDED = "terminated Error 3"


def summary(status: PodStatus) -> PodSummary:
    return summarize_pod(make_pod("web", status=status))


def fields(found: list[Transition]) -> list[tuple[str, ...]]:
    return [(it.kind, it.subject, it.before_text, it.after_text, it.reason) for it in found]


def attempt_ended(number: int, code: int) -> ContainerState:
    state = ended("app", code).state
    assert state.terminated is not None
    finished = Time.from_unix_nanos(10**18 + number * 10**9)
    return ContainerState(terminated=structs.replace(state.terminated, finished_at=finished))


def life(codes: list[int]) -> list[ContainerStatus]:
    """The statuses of a container over several attempts with these exit codes."""
    shown = [waiting("app")]
    last = ContainerState()
    for number, code in enumerate(codes):
        end = attempt_ended(number, code)
        attempt = [
            structs.replace(running("app", ready=False), last_state=last),
            structs.replace(running("app"), last_state=last),
            structs.replace(ended("app"), state=end, last_state=last),
            structs.replace(waiting("app", BACK_OFF), last_state=end),
        ]
        shown += [structs.replace(it, restart_count=number) for it in attempt]
        last = end
    return shown


@given(
    codes=st.lists(st.sampled_from([0, 3, 137]), min_size=1, max_size=4),
    data=st.data(),
)
def test_summaries_tell_of_a_life_what_its_statuses_tell(
    codes: list[int], data: st.DataObject
) -> None:
    every = life(codes)
    seen = sorted(data.draw(st.sets(st.integers(0, len(every) - 1), min_size=1)))
    old: PodStatus | None = None
    for number in seen:
        shown = every[number]
        new = make_status("Running", shown, Ready=str(shown.ready))
        expected = fields(status_transitions(old, new))
        before = None if old is None else summary(old)
        assert fields(summary_transitions(before, summary(new))) == expected
        old = new


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(
            running("app"),
            structs.replace(running("app"), restart_count=1, last_state=attempt_ended(0, 3)),
            [
                ("container", "app", "running", ENDED, "Error"),
                ("restart", "app", "0", "1", ""),
                ("container", "app", ENDED, "running", ""),
            ],
            id="an unseen termination",
        ),
        pytest.param(
            running("app", ready=False),
            structs.replace(waiting("app", BACK_OFF), last_state=attempt_ended(0, 3)),
            [
                ("container", "app", "running", ENDED, "Error"),
                ("container", "app", ENDED, f"waiting {BACK_OFF}", BACK_OFF),
            ],
            id="an unseen termination before a back-off",
        ),
        pytest.param(
            structs.replace(waiting("app", BACK_OFF), last_state=attempt_ended(0, 3)),
            structs.replace(
                running("app", ready=False), restart_count=1, last_state=attempt_ended(0, 3)
            ),
            [
                ("restart", "app", "0", "1", ""),
                ("container", "app", f"waiting {BACK_OFF}", "running", ""),
            ],
            id="a reported termination before a back-off",
        ),
        pytest.param(
            structs.replace(waiting("app", BACK_OFF), last_state=attempt_ended(0, 3)),
            structs.replace(
                running("app", ready=False), restart_count=2, last_state=attempt_ended(1, 3)
            ),
            [
                ("container", "app", f"waiting {BACK_OFF}", ENDED, "Error"),
                ("restart", "app", "0", "2", ""),
                ("container", "app", ENDED, "running", ""),
            ],
            id="two ends that look alike",
        ),
    ],
)
def test_terminations_are_reported(
    old: ContainerStatus, new: ContainerStatus, expected: list[tuple[str, ...]]
) -> None:
    found = summary_transitions(
        summary(make_status("Running", old)), summary(make_status("Running", new))
    )
    assert fields(found) == expected


def test_conditions_come_change_and_go() -> None:
    old = summary(make_status("Running", Ready="False", Gate="True"))
    new = summary(make_status("Running", Ready="True", Other="Unknown"))
    assert fields(summary_transitions(old, new)) == [
        ("condition", "Ready", "False", "True", ""),
        ("condition", "Other", "", "Unknown", ""),
        ("condition", "Gate", "True", "", ""),
    ]
