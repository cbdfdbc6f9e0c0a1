"""Every status is in the history, also across a restart and a full disk."""

import asyncio
import gc
import sqlite3
import threading
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from podstatus import Pod, PodStatus
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.history.sqlite_store import (
    History,
    HistoryEntry,
    HistoryError,
    NodeRecords,
)
from podstatus.observe.history.status_listener import StatusHistoryWriter
from podstatus.observe.history.writer import Retention
from podstatus.observe.transitions.compare_statuses import Transition
from podstatus.observe.transitions.tracker import estimate_status_size
from podstatus.testing.builders import ended, make_pod, make_status
from podstatus.testing.clock import FakeClock, run_ready_tasks

POD = make_pod("web")


class Notes(dict[str, str]):
    """An object whose release can be observed."""


def with_phase(phase: str, pod: Pod = POD) -> Pod:
    return make_pod(pod.name, status=PodStatus(phase=phase))


def update(writer: StatusHistoryWriter, *phases: str) -> None:
    for phase in phases:
        pod = with_phase(phase)
        writer.on_pod_updated(pod, pod.status, is_added=False)


def recorded(history: History) -> list[tuple[str, str, str]]:
    found = history.timeline("default", "web")
    return [(m.transition.kind, m.transition.before_text, m.transition.after_text) for m in found]


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History.open(tmp_path / "history.db")


def write(writer: StatusHistoryWriter) -> None:
    asyncio.run(writer.write_once())


def test_changes_are_written_in_order_with_their_times(history: History) -> None:
    clock = FakeClock()
    writer = StatusHistoryWriter(history, clock=clock)
    update(writer, "Pending")
    asyncio.run(clock.advance(0.123))
    update(writer, "Running", "Running")
    write(writer)
    assert recorded(history) == [
        ("seen", "", ""),
        ("phase", "", "Pending"),
        ("phase", "Pending", "Running"),
    ]
    first, _, last = history.timeline("default", "web")
    assert last.at - first.at == 123_000_000
    assert writer.counts.written == 3


def test_restart_notes_only_what_is_new(history: History) -> None:
    before = StatusHistoryWriter(history, clock=FakeClock())
    update(before, "Pending", "Running")
    write(before)
    after = StatusHistoryWriter(history, clock=FakeClock())
    update(after, "Running", "Failed")
    write(after)
    assert recorded(history)[2:] == [
        ("phase", "Pending", "Running"),
        ("phase", "Running", "Failed"),
    ]


def test_change_during_a_restart_is_noted_against_what_was_written(history: History) -> None:
    before = StatusHistoryWriter(history, clock=FakeClock())
    update(before, "Running")
    write(before)
    after = StatusHistoryWriter(history, clock=FakeClock())
    update(after, "Succeeded")
    write(after)
    assert recorded(history)[-1] == ("phase", "Running", "Succeeded")


def test_overflow_is_counted_and_no_change_is_wrong(history: History) -> None:
    writer = StatusHistoryWriter(history, clock=FakeClock(), max_entries=2)
    update(writer, "Pending", "Running", "Failed", "Failed")
    assert writer.counts.overflowed == 2
    write(writer)
    update(writer, "Failed")
    write(writer)
    assert recorded(history)[-1] == ("phase", "Running", "Failed")


def test_what_waits_is_bounded_in_bytes(history: History) -> None:
    writer = StatusHistoryWriter(history, clock=FakeClock(), max_bytes=50_000)
    long = make_pod("web", status=PodStatus(phase="Running", message="x" * 20_000))
    for _ in range(3):
        writer.on_pod_updated(long, long.status, is_added=False)
    assert (writer.counts.waiting, writer.counts.overflowed) == (2, 1)
    writer.add_event(POD, "Warning", "Unhealthy", "x" * 20_000)
    assert writer.counts.lost_events == 1
    writer.add_event(POD, "Warning", "Unhealthy", "short")
    assert writer.counts.waiting == 3
    write(writer)
    for _ in range(3):
        writer.on_pod_updated(long, long.status, is_added=False)
    assert writer.counts.overflowed == 2, "what is written makes room"


def test_what_waits_holds_statuses_and_no_specs(history: History) -> None:
    writer = StatusHistoryWriter(history, clock=FakeClock())
    notes = Notes({"app": "web"})
    pod = make_pod("web", annotations=notes, status=PodStatus(phase="Running"))
    gone = weakref.ref(notes)
    writer.on_pod_updated(pod, pod.status, is_added=False)
    del pod, notes
    gc.collect()
    assert gone() is None


def test_the_size_of_a_status_is_about_what_it_takes() -> None:
    said = "x" * 500
    container = ended("app", 3, message=said)
    status = make_status("Running", container, container, Ready="True")
    assert estimate_status_size(status) == 700 + 250 + 2 * (1_500 + 500)


def test_the_rest_is_written_beside_the_loop(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, loop_lives = history.append, threading.Event()

    def slow(entries: Sequence[HistoryEntry], nodes: NodeRecords) -> int:
        assert loop_lives.wait(60), "the loop stands still"
        return append(entries, nodes)

    async def live() -> None:
        writer = StatusHistoryWriter(history, clock=FakeClock())
        task = asyncio.create_task(writer.run())
        await run_ready_tasks()
        monkeypatch.setattr(history, "append", slow)
        update(writer, "Pending", "Running")
        task.cancel()
        await run_ready_tasks()
        loop_lives.set()
        await asyncio.wait({task})

    asyncio.run(live())
    assert recorded(history)[-1] == ("phase", "Pending", "Running")


def test_it_is_written_while_all_common_threads_wait(history: History) -> None:
    disk = threading.Event()

    async def live() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        waiting = loop.run_in_executor(None, disk.wait)
        writer = StatusHistoryWriter(history, clock=FakeClock())
        update(writer, "Pending")
        try:
            async with asyncio.timeout(60):
                await writer.write_once()
        finally:
            disk.set()
            await waiting

    asyncio.run(live())
    assert recorded(history)[-1] == ("phase", "", "Pending")


def test_what_cannot_be_written_waits(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = StatusHistoryWriter(history, clock=FakeClock())
    update(writer, "Pending", "Running")

    def full(_: object, __: object) -> int:
        raise HistoryError("cannot write: database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(history, "append", full)
        write(writer)
    assert writer.counts.waiting == 2
    write(writer)
    assert recorded(history)[1:] == [("phase", "", "Pending"), ("phase", "Pending", "Running")]
    assert writer.counts.waiting == 0


async def keep_clean(writer: StatusHistoryWriter, clock: FakeClock, *, hours: int) -> None:
    """Prune every 10 minutes, the maximum that counts between two prunings."""
    for _ in range(6 * hours):
        await clock.advance(600)
        await writer.prune_once()


async def test_what_is_too_old_is_forgotten(history: History) -> None:
    clock = FakeClock()
    writer = StatusHistoryWriter(history, clock=clock, retention=Retention(days=1))
    update(writer, "Pending")
    await writer.write_once()
    await keep_clean(writer, clock, hours=23)
    update(writer, "Running")
    await writer.write_once()
    await writer.prune_once()
    assert history.count() == 3
    await keep_clean(writer, clock, hours=2)
    assert recorded(history) == [("phase", "Pending", "Running")]
    await keep_clean(writer, clock, hours=24)
    assert history.count() == 0
    assert not history.last_states(POD.uid)


async def test_run_writes_the_rest_when_it_is_cancelled(history: History) -> None:
    clock = FakeClock()
    writer = StatusHistoryWriter(history, clock=clock)
    task = asyncio.create_task(writer.run())
    await run_ready_tasks()
    update(writer, "Pending")
    task.cancel()
    await asyncio.wait({task})
    assert recorded(history) == [("seen", "", ""), ("phase", "", "Pending")]


def test_history_of_another_format_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(HistoryError, match=r"history\.db has format 99"):
        History.open(path)


def test_file_that_is_no_history_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    path.write_text("something else, and quite a lot of it" * 100)
    with pytest.raises(HistoryError, match=r"history\.db"):
        History.open(path)


def test_mistake_in_a_batch_gives_no_moments_of_one_pod_to_another(history: History) -> None:
    def entry(name: str, subject: str = "") -> HistoryEntry:
        change = Transition(kind="phase", subject=subject, after="Running")
        uid = PodUID(f"uid-{name}")
        return HistoryEntry(at=1, uid=uid, namespace="default", name=name, transition=change)

    with pytest.raises(UnicodeEncodeError):
        history.append([entry("web", "\ud800")])
    history.append([entry("web")])
    history.append([entry("other")])
    assert len(history.timeline("default", "web")) == 1
    assert len(history.timeline("default", "other")) == 1
