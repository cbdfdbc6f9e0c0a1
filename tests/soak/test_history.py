"""A watch of what cannot have happened is noticed."""

import pytest

from tests.soak.history import History
from tests.soak.pods import RUNS, ended, shown, status, told
from tests.soak.truth import Told
from tests.support.processes.agent_process import Document

ENDED = shown(status(state=ended(7, "1")), phase="Failed", version=3)
TWICE = status(count=2, lastState=ended(4, "2"))
WRONG: dict[str, tuple[list[Document], str]] = {
    "a phase goes back": (
        [shown(status()), shown(status(), phase="Pending", version=2)],
        "its phase went back from Running to Pending",
    ),
    "an ended pod lives": ([ENDED, shown(status(), version=4)], "it was Failed, now it is Running"),
    "restarts get fewer": (
        [shown(TWICE), shown(status(count=1), version=2)],
        "restartCount went back 2 -> 1",
    ),
    "a wrong exit code": ([shown(status(state=ended(0, "1")))], "attempt 1 ended with 7, 0 is"),
    "an end changes": (
        [
            shown(status(state=ended(7, "1"))),
            shown(status(count=1, lastState=ended(137, "1")), version=2),
        ],
        "the end of process://1 was (7, 'Error'), now it is (137, 'Error')",
    ),
    "ended and Ready": (
        [shown(status(state=ended(7, "1")), phase="Failed", ready="True")],
        "it is Failed and Ready",
    ),
    "versions go back": ([ENDED, {**ENDED, "metadata": shown()["metadata"]}], "version 1 came"),
}


def see(history: History, *pods: Document) -> list[str]:
    return [complaint for pod in pods for complaint in history.see("MODIFIED", pod)]


def make_history(kills: int = 0) -> History:
    return History(lambda *_: told(7, 4, None, kills=kills))


def test_a_life_is_not_complained_about() -> None:
    history = make_history()
    starts = shown(status(state={"waiting": {}}), phase="Pending")
    runs = shown(status(count=2, lastState=ended(4, "2")), version=2)
    assert see(history, starts, runs) == []
    assert history.see("DELETED", {**runs, "metadata": {**runs["metadata"]}}) == []
    assert [*history.gone] == ["u"]
    assert (history.events, history.ends_seen) == (3, 1)


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_have_happened_is_told(case: str) -> None:
    pods, complaint = WRONG[case]
    found = see(make_history(), *pods)
    assert any(complaint in it for it in found), found


def test_a_pod_whose_shim_was_killed_may_begin_anew() -> None:
    pods = [shown(status()), shown(status(state={"waiting": {}}), phase="Pending", version=2)]
    assert see(make_history(kills=1), *pods) == []


def test_a_pod_that_comes_back_is_told() -> None:
    history = make_history()
    history.see("DELETED", shown(status()))
    (complaint,) = see(history, shown(status(), version=2))
    assert "there again after it was deleted" in complaint


def test_mirrors_are_left_to_the_calm() -> None:
    mirror: Document = {"annotations": {"kubernetes.io/config.mirror": "s"}}
    history = History(lambda *_: Told())
    pods = [
        shown(status(state=RUNS, count=6), **mirror),
        shown(status(count=0), phase="Pending", version=2, **mirror),
    ]
    assert see(history, *pods) == []
