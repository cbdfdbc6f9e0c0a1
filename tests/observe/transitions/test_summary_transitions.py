"""Transitions of summaries equal those of the statuses they are made of."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from podstatus import PodStatus
from podstatus.kube.objects.pod_status import ContainerState, ContainerStatus
from podstatus.kube.scalars.time import Time
from podstatus.observe.summary.pod import PodSummary, summarize_pod
from podstatus.observe.transitions.compare_statuses import (
    Transition,
    status_transitions,
    summary_transitions,
)
from podstatus.testing.builders import ended, make_pod, make_status, running, waiting

BACK_OFF = "CrashLoopBackOff"


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
