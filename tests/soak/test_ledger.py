"""Writes that were acknowledged and are lost are noticed; so is what else is counted and read."""

from collections import Counter
from pathlib import Path

import pytest

from tests.soak.agent_log import AgentLog
from tests.soak.campaign import Plan
from tests.soak.ledger import MARK, Ledger
from tests.soak.proxy import name_of
from tests.soak.report import Tally, fault_table
from tests.support.processes.agent_process import Document


def pod(version: int = 1, mark: int = 0, **meta: str) -> Document:
    labels = {"kind": "job", **({MARK: str(mark)} if mark else {})}
    named = {"name": "a", "uid": "u", "resourceVersion": str(version), "labels": labels}
    return {"metadata": {**named, **meta}, "spec": {"terminationGracePeriodSeconds": 1}}


def ledger() -> Ledger:
    made = Ledger()
    made.take_created(pod())
    return made


def test_what_was_acknowledged_and_is_there_is_right() -> None:
    made = ledger()
    made.entries["u"].marks_tried = 2
    assert made.take_marked("u", pod(2, mark=1)) == []
    # The second mark had no answer: it may be there or not.
    assert list(made.judge([pod(2, mark=1)])) == []
    assert list(made.judge([pod(3, mark=2)])) == []


def test_a_lost_creation_is_told() -> None:
    assert list(ledger().judge([])) == ["a (u) was created and is not there"]


def test_a_lost_mark_is_told() -> None:
    made = ledger()
    made.entries["u"].marks_tried = 1
    made.take_marked("u", pod(2, mark=1))
    assert list(made.judge([pod(2)])) == ["a (u): mark 1 was acknowledged, 0 is there"]


def test_who_is_stuck_in_its_deletion_is_told() -> None:
    made = ledger()
    made.take_deleted("u", forced=False)
    (complaint,) = made.judge([pod(2, deletionTimestamp="then")])
    assert complaint == "a (u) was deleted and is still there, since then"
    made.settle([])
    assert list(made.judge([])) == []
    assert made.graceful == {"u": True}


def test_a_deletion_without_an_answer_is_looked_up() -> None:
    made = ledger()
    made.entries["u"].maybe_deleted = True
    made.settle([pod()])
    assert made.entries["u"].wanted
    made.entries["u"].maybe_deleted = True
    made.settle([pod(deletionTimestamp="then")])
    assert made.entries["u"].deleted


def test_versions_that_do_not_grow_are_told() -> None:
    made = ledger()
    assert made.take_created(pod(5, uid="v")) == []
    assert made.take_created(pod(5, uid="w")) == ["version 5 was given out after 5"]


def test_who_nobody_created_is_told() -> None:
    assert list(Ledger().judge([pod()])) == ["a (u) is there and nobody created it"]


@pytest.mark.parametrize(
    ("method", "path", "query", "name"),
    [
        ("PATCH", "/api/v1/namespaces/default/pods/a/status", "", "PATCH pods/status"),
        ("GET", "/api/v1/pods", "?watch=1", "WATCH pods"),
        ("GET", "/api/v1/namespaces/default/pods/a", "", "GET pods"),
        ("POST", "/api/v1/namespaces/default/events", "", "POST events"),
        ("PATCH", "/api/v1/nodes/n/status", "", "PATCH nodes/status"),
        ("GET", "/api/v1/namespaces/x", "", "GET namespaces"),
        (
            *("PUT", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n", ""),
            "PUT leases",
        ),
    ],
)
def test_requests_are_counted_by_what_they_are_about(
    method: str, path: str, query: str, name: str
) -> None:
    assert name_of(method, path, query) == name


LINE = "2026-11-15T23:44:47.7Z ERROR   a.b: it broke\n"
TRACE = "Traceback (most recent call last):\n  File\n"


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (f"{LINE}{TRACE}KeyError: 'x'\n", "KeyError: 'x'"),
        (f"{LINE}m.py:1: RuntimeWarning: coroutine 'f' was never awaited\n  f()\n", "  f()"),
        (f"{LINE}{TRACE}OSError: [Errno 28] No space left on device\n", None),
        (LINE, None),
    ],
    ids=["traceback", "not awaited", "full disk", "ordinary"],
)
def test_what_a_log_should_never_say_is_told(record: str, told: str | None, tmp_path: Path) -> None:
    path = tmp_path / "agent.log"
    log = AgentLog(path)
    assert log.complaints() == []
    path.write_text(LINE + record[: len(record) - 8])
    assert log.complaints() == []  # there may be more to come
    path.write_text(LINE + record + LINE)
    expected = [] if told is None else [f"{path}: {LINE.strip()} … {told}"]
    assert log.complaints() == expected
    assert log.complaints(to_the_end=True) == []


def test_the_last_record_of_a_log_is_told_in_the_end(tmp_path: Path) -> None:
    path = tmp_path / "agent.log"
    path.write_text(f"{LINE}{TRACE}KeyError: 'x'\n")
    log = AgentLog(path)
    assert log.complaints() == []
    assert len(log.complaints(to_the_end=True)) == 1


def test_a_fault_is_survived_once_all_is_calm_again() -> None:
    tally = Tally()
    tally.try_("agent, SIGKILL", "kill")
    tally.try_("network, slow", "outage")
    tally.recovered(2.0)
    tally.try_("agent, SIGKILL", "kill")
    rows = fault_table(tally, {"disk, full": "needs root", "agent, SIGKILL": ""}).splitlines()
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]
    assert cells == [
        ["agent, SIGKILL", "2", "1"],
        ["network, slow", "1", "1"],
        ["all", "3", "2"],
        ["disk, full", "-", "not tried: needs root"],
    ]


def test_a_campaign_is_over_by_time_or_by_kills() -> None:
    assert not Plan(seed=1, seconds=10).is_done(9, Counter(kill=99))
    assert Plan(seed=1, seconds=10).is_done(10, Counter())
    by_kills = Plan(seed=1, seconds=10, kills=20)
    assert not by_kills.is_done(99, Counter(kill=20, outage=1, jump=2))
    assert not by_kills.is_done(99, Counter(kill=20, outage=2, jump=1))
    assert by_kills.is_done(1, Counter(kill=20, outage=2, jump=2))
