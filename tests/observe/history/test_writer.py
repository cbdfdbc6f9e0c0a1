"""The history writer with summaries: written, and continued after a restart."""

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from podstatus import PodStatus
from podstatus.observe.history.sqlite_store import (
    History,
    HistoryEntry,
    HistoryError,
    NodeRecords,
)
from podstatus.observe.history.writer import SummaryHistoryWriter
from podstatus.observe.summary.pod import PodSummary, summarize_pod
from podstatus.observe.transitions.compare_statuses import SYNC, Transition
from podstatus.testing.builders import make_pod, make_status, running, waiting
from podstatus.testing.clock import FakeClock


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    history = History.open(tmp_path / "history.db")
    yield history
    history.close()


def history_writer(history: History) -> SummaryHistoryWriter:
    return SummaryHistoryWriter(history, clock=FakeClock())


def summary(status: PodStatus, name: str = "web", deleted_at: str | None = None) -> PodSummary:
    return summarize_pod(make_pod(name, status=status, deleted_at=deleted_at))


def recorded(history: History, name: str = "web") -> list[tuple[str, ...]]:
    entries = history.timeline("default", name)
    return [(m.transition.kind, m.transition.before_text, m.transition.after_text) for m in entries]


def write(one: SummaryHistoryWriter) -> None:
    asyncio.run(one.write_once())


CREATING = make_status("Pending", waiting("app"), Ready="False")
RUNNING = make_status("Running", running("app"), Ready="True")


def test_what_happens_to_a_pod_is_noted_from_its_summaries(history: History) -> None:
    one = history_writer(history)
    one.pod_changed(summary(CREATING))
    one.pod_changed(summary(RUNNING))
    one.pod_changed(summary(RUNNING, deleted_at="2026-11-16T02:48:00Z"))
    one.pod_finished(summary(RUNNING))
    write(one)
    assert recorded(history) == [
        ("seen", "", ""),
        ("container", "", "waiting ContainerCreating"),
        ("phase", "", "Pending"),
        ("condition", "", "False"),
        ("container", "waiting ContainerCreating", "running"),
        ("readiness", "False", "True"),
        ("phase", "Pending", "Running"),
        ("condition", "False", "True"),
        ("deletion", "", ""),
        ("finished", "", ""),
    ]


def test_the_next_one_notes_what_is_new_against_what_was_noted(history: History) -> None:
    before = history_writer(history)
    before.pod_changed(summary(CREATING))
    write(before)
    count = len(recorded(history))
    after = history_writer(history)
    after.pod_changed(summary(CREATING))
    write(after)
    assert len(recorded(history)) == count
    after.pod_changed(summary(RUNNING))
    write(after)
    assert recorded(history)[count:] == [
        ("container", "waiting ContainerCreating", "running"),
        ("readiness", "False", "True"),
        ("phase", "Pending", "Running"),
        ("condition", "False", "True"),
    ]


def test_what_could_not_be_written_is_worked_out_again(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = history_writer(history)
    one.pod_changed(summary(CREATING))
    write(one)
    count = len(recorded(history))
    one.pod_changed(summary(RUNNING))

    def full(_: object, __: object) -> int:
        raise HistoryError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(history, "append", full)
        write(one)
    assert one.counts.waiting == 1
    write(one)
    assert len(recorded(history)) == count + 4


def test_writing_comes_to_an_end_though_as_much_comes_meanwhile(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, append, pod = history_writer(history), history.append, summary(RUNNING)
    rounds: list[int] = []

    def append_under_load(entries: Sequence[HistoryEntry], nodes: NodeRecords) -> int:
        rounds.append(len(entries))
        for _ in entries if len(rounds) < 5 else ():
            one.add_event(pod, "Normal", "Pulled", "meanwhile")
        return append(entries, nodes)

    monkeypatch.setattr(history, "append", append_under_load)
    for _ in range(3):
        one.add_event(pod, "Normal", "Pulled", "before")
    write(one)
    assert (rounds, one.counts.waiting) == ([3], 3)


def test_much_that_waits_is_written_with_beats_and_the_file_cleaned_meanwhile(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []

    def forget(**_: int) -> int:
        steps.append(f"cleaned at {history.count()}")
        return 0

    monkeypatch.setattr("podstatus.observe.history.writer._PRUNE_ENTRIES", 1_000)
    monkeypatch.setattr(history, "prune", forget)
    beat = partial(steps.append, "beat")
    one = SummaryHistoryWriter(history, clock=FakeClock(), heartbeat=beat)
    pod = summary(RUNNING)
    for _ in range(2_200):
        one.add_event(pod, "Normal", "Pulled", "one of many")
    write(one)
    assert steps == ["beat"] * 2 + ["cleaned at 1000"] + ["beat"] * 2 + ["cleaned at 2000", "beat"]


def test_what_does_not_fit_is_counted_from_any_thread(history: History) -> None:
    one = SummaryHistoryWriter(history, clock=FakeClock(), max_entries=0)
    pod, threads = summary(RUNNING), 4

    def update(_: int) -> None:
        for _ in range(500):
            one.pod_changed(pod)
            one.add_event(pod, "Normal", "Pulled", "lost")

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(update, range(threads)))
    assert (one.counts.overflowed, one.counts.lost_events) == (2_000, 2_000)


def test_pods_whose_end_was_not_noted_are_known(history: History) -> None:
    one = history_writer(history)
    for name in ("web", "db", "old"):
        one.pod_changed(summary(RUNNING, name))
    one.pod_finished(summary(RUNNING, "old"))
    write(one)
    found = sorted(history.unfinished_pods(), key=lambda it: it.name)
    assert [(pod.uid, pod.namespace, pod.name) for pod in found] == [
        (f"uid-{name}", "default", name) for name in ("db", "web")
    ]


def test_of_pods_without_an_end_those_are_known_that_were_noted_after_a_moment(
    history: History,
) -> None:
    one = history_writer(history)
    assert history.newest_id() == 0
    for name in ("web", "db"):
        one.pod_changed(summary(CREATING, name))
    write(one)
    newest = history.newest_id()
    assert newest == history.count()
    for pod in (summary(RUNNING, "web"), summary(CREATING, "db"), summary(CREATING, "new")):
        one.pod_changed(pod)
    write(one)
    assert sorted(it.name for it in history.unfinished_pods(after=newest)) == ["new", "web"]


def test_an_event_after_its_end_does_not_make_a_pod_unfinished(history: History) -> None:
    one = history_writer(history)
    for name in ("old", "web"):
        one.pod_changed(summary(RUNNING, name))
    one.pod_finished(summary(RUNNING, "old"))
    for name in ("old", "web"):
        one.add_event(summary(RUNNING, name), "Normal", "Killing", "Stopping container app")
        one.add_entry(summary(RUNNING, name), Transition(kind=SYNC, duration_seconds=2.0))
    write(one)
    assert [it.name for it in history.unfinished_pods()] == ["web"]


@pytest.mark.parametrize("together", [False, True], ids=["one by one", "together"])
def test_one_that_was_gone_and_came_back_is_seen_again(history: History, *, together: bool) -> None:
    one, pod = history_writer(history), summary(RUNNING, deleted_at="2026-11-16T02:48:00Z")
    one.pod_changed(pod)
    write(one)
    first = recorded(history)
    assert (first[0][0], first[1][0]) == ("deletion", "seen")
    one.pod_finished(pod)
    if not together:
        one.add_event(pod, "Normal", "Killing", "Stopping container app")
        write(one)
    one.pod_changed(pod)
    write(one)
    again = [it for it in recorded(history)[len(first) :] if it[0] != "event"]
    assert again == [("finished", "", ""), *first]
    assert [it.name for it in history.unfinished_pods()] == ["web"]
