"""The judges complain when they should, and only then."""

import pytest

from tests.soak.judge import Known, judge, judge_last_words
from tests.soak.pods import RUNS, ended, known, shown, status, told
from tests.soak.truth import Attempt, Told, parse_told
from tests.support.processes.agent_process import Document

BACK_OFF: Document = {"waiting": {"reason": "CrashLoopBackOff"}}
UNKNOWN = ended(137, reason="ContainerStatusUnknown", finishedAt=None)
NEVER: dict[str, str] = {"policy": "Never"}

RIGHT: dict[str, tuple[Document, Known]] = {
    "runs": (shown(status()), known("app", app=told(None))),
    "ended well": (
        shown(status(state=ended(0, "1")), phase="Succeeded", policy="Never"),
        known(app=told(0)),
    ),
    "failed": (
        shown(status(state=ended(7, "1")), phase="Failed", policy="Never"),
        known(app=told(7)),
    ),
    "waits to be started again": (
        shown(status(state=BACK_OFF, count=1, lastState=ended(4, "2"))),
        known(app=told(3, 4)),
    ),
    "runs again": (
        shown(status(count=1, lastState=ended(3, "1"))),
        known("app", app=told(3, None)),
    ),
    "its shim was killed": (
        shown(status(state=UNKNOWN), phase="Failed", policy="Never"),
        known(app=told(None, kills=1)),
    ),
    "killed before it said a word": (
        shown(status(count=1, lastState=UNKNOWN)),
        known("app", app=Told(attempts=(Attempt(number=1),), kills=1)),
    ),
    "its first container failed": (
        shown(
            status(state={"waiting": {"reason": "PodInitializing"}}),
            init=[status("first", ended(5, "1"))],
            phase="Failed",
            policy="Never",
        ),
        known(first=told(5)),
    ),
    "a start failed on a full disk": (
        shown(status(count=2, lastState=ended(3, "1"))),
        known("app", full=True, app=told(3, None)),
    ),
}
WRONG: dict[str, tuple[Document, Known, str]] = {
    "a wrong exit code": (
        shown(status(state=ended(0, "1")), phase="Succeeded", policy="Never"),
        known(app=told(7)),
        "attempt 1 ended with 7, 0 is shown",
    ),
    "an exit code of nobody": (
        shown(status(count=1, lastState=ended(9))),
        known("app", app=told(3, None)),
        "no attempt ended with 9",
    ),
    "the end before the last": (
        shown(status(state=BACK_OFF, count=1, lastState=ended(3, "1"))),
        known(app=told(3, 4)),
        "attempt 2 ended with 4",
    ),
    "an end that is not shown": (
        shown(status(state={"waiting": {"reason": "ContainerCreating"}})),
        known(app=told(3)),
        "no end is shown",
    ),
    "unknown without a reason": (
        shown(status(state=UNKNOWN), phase="Failed", policy="Never"),
        known(app=told(0)),
        "nobody killed",
    ),
    "runs, and is shown as ended": (
        shown(status(state=ended(137)), phase="Failed", policy="Never"),
        known("app", app=told(None)),
        "it runs, shown is",
    ),
    "shown as running, and does not": (
        shown(status()),
        known(app=told(3)),
        "it does not run, shown is",
    ),
    "restarts lost": (
        shown(status(count=1, lastState=ended(4, "2"))),
        known("app", app=told(3, 4, None)),
        "started 3 times, restartCount is 1",
    ),
    "restarts invented": (
        shown(status(count=5, lastState=ended(3, "1"))),
        known("app", app=told(3, None)),
        "started 2 times only, restartCount is 5",
    ),
    "the wrong phase": (
        shown(status(state=ended(7, "1")), phase="Succeeded", policy="Never"),
        known(app=told(7)),
        "its phase is Succeeded, Failed would be right",
    ),
    "ended, and processes are left": (
        shown(status(state=UNKNOWN), phase="Failed", policy="Never"),
        known("app", app=told(None, kills=1)),
        "run on",
    ),
    "ended, and Ready": (
        shown(status(state=ended(0, "1")), phase="Succeeded", policy="Never", ready="True"),
        known(app=told(0)),
        "it is Succeeded and Ready",
    ),
    "not Ready, though its probe says so": (
        shown(status(), labels={"soak-ready": "True"}),
        known("app", app=told(None)),
        "its probes say Ready=True, shown is False",
    ),
    "not started again": (
        shown(status(state=ended(3, "1", at="2027-01-15T07:58:00Z"))),
        known(app=told(3)),
        "ended 120 s ago, not started again",
    ),
}


@pytest.mark.parametrize("case", RIGHT)
def test_what_is_true_is_not_complained_about(case: str) -> None:
    pod, truth = RIGHT[case]
    assert judge(pod, truth) == []


@pytest.mark.parametrize("case", WRONG)
def test_what_is_not_true_is_told(case: str) -> None:
    pod, truth, complaint = WRONG[case]
    assert any(complaint in found for found in judge(pod, truth)), judge(pod, truth)


def test_a_deleted_pod_has_to_have_shown_how_it_ended() -> None:
    truth = known(app=told(0))
    assert judge_last_words(shown(status(state=ended(0, "1"))), truth) == []
    (complaint,) = judge_last_words(shown(status(state=RUNS)), truth)
    assert "its end was never shown" in complaint
    (complaint,) = judge_last_words(shown(status(state=ended(1, "1"))), truth)
    assert "attempt 1 ended with 0, 1 is shown" in complaint
    assert judge_last_words(shown(status(state=BACK_OFF)), known()) == []


def test_a_restarted_container_may_be_stopped_before_its_first_word() -> None:
    truth = known(app=told(3))
    assert judge_last_words(shown(status(state=ended(143), count=1)), truth) == []
    (complaint,) = judge_last_words(shown(status(state=ended(143, "1"))), truth)
    assert "attempt 1 ended with 3, 143 is shown" in complaint
    (complaint,) = judge_last_words(shown(status(state=ended(9), count=1)), truth)
    assert "no attempt ended with 9" in complaint


def test_the_files_of_containers_are_read() -> None:
    text = "start 1\nend 1 3\nstart 2\nkill\nend 2 0\nstart 3\n"
    attempts = (
        Attempt(number=1, code=3),
        Attempt(number=2, code=0, killed=True),
        Attempt(number=3),
    )
    assert parse_told(text) == Told(attempts=attempts, kills=1)
    assert parse_told("kill\nstart 1\n") == Told(attempts=(Attempt(number=1),), kills=1)
