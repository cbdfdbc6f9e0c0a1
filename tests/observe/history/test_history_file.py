"""The history file: bounded, readable while it is written, and never fatal."""

import asyncio
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from podstatus import PodStatus
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.history.sqlite_store import (
    History,
    HistoryEntry,
    HistoryError,
    NodeRecords,
    open_history_reader,
)
from podstatus.observe.history.status_listener import StatusHistoryWriter
from podstatus.observe.history.writer import Retention
from podstatus.observe.summary.pod import summarize_pod
from podstatus.observe.transitions.compare_statuses import (
    AGENT_DOWNTIME,
    DELETION,
    PHASE,
    SYNC,
    Transition,
)
from podstatus.testing.builders import make_pod
from podstatus.testing.clock import FakeClock

MIB = 2**20


def moments(count: int, *, pods: int = 10, first: int = 0) -> list[HistoryEntry]:
    return [
        HistoryEntry(
            at=number,
            uid=PodUID(f"uid-{number % pods}"),
            namespace="default",
            name=f"pod-{number % pods}",
            transition=Transition(
                kind=PHASE, before="Pending", after=str(number), message="x" * 50
            ),
        )
        for number in range(first, first + count)
    ]


@pytest.mark.parametrize(
    ("kind", "row", "seconds"),
    [
        (AGENT_DOWNTIME, "46.940 s", 46.94),
        (AGENT_DOWNTIME, "0.000 s", 0.0),
        (SYNC, "12.3 s", 12.3),
        (DELETION, "30 s", 30.0),
        (DELETION, "", None),
        (AGENT_DOWNTIME, "-5.000 s", None),
        (AGENT_DOWNTIME, "soon", None),
        (AGENT_DOWNTIME, "inf s", None),
        (PHASE, "30 s", None),
    ],
)
def test_durations_of_earlier_builds_are_read_as_numbers(
    tmp_path: Path, kind: str, row: str, seconds: float | None
) -> None:
    earlier = structs.replace(moments(1)[0], transition=Transition(kind=kind, after=row))
    with closing(History.open(tmp_path / "history.db")) as history:
        history.append([earlier])
        (entry,) = history.entries_after(0, limit=2)
        assert entry.transition.duration_seconds == seconds
        assert entry.transition.after_text == row
        history.append([entry])
        _, again = history.entries_after(0, limit=2)
        assert again.transition == entry.transition


def on_disk(path: Path) -> int:
    return sum(part.stat().st_size for part in path.parent.glob(f"{path.name}*"))


@pytest.mark.parametrize("pods", [10, 5_000])
def test_its_size_on_the_disk_is_bounded_while_it_is_written(tmp_path: Path, pods: int) -> None:
    history = History.open(tmp_path / "history.db")
    largest = 0
    for first in range(0, 100_000, 2_000):
        history.append(moments(2_000, pods=pods, first=first))
        if first % 4_000 == 0:
            history.prune(elapsed=1, max_age=10, max_bytes=2 * MIB)
        largest = max(largest, (tmp_path / "history.db").stat().st_size)
        assert on_disk(tmp_path / "history.db") < 14 * MIB
    assert largest < 4 * MIB
    # The newest entries are left, close to the limit.
    ids = [entry.id for entry in history.entries_after(0, limit=200_000)]
    assert ids == list(range(100_001 - len(ids), 100_001))
    assert len(ids) > 5_000


def test_the_file_becomes_smaller_when_much_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    history = History.open(path)
    history.append(moments(49_000))
    history.prune(elapsed=1, max_age=10, max_bytes=100 * MIB)
    history.append(moments(1_000, first=49_000))
    large = path.stat().st_size
    assert history.prune(elapsed=10, max_age=10, max_bytes=100 * MIB) == 49_000
    history.close()
    assert path.stat().st_size < large / 10


def test_many_moments_are_forgotten_in_pieces_and_all_of_them(tmp_path: Path) -> None:
    history = History.open(tmp_path / "history.db")
    history.append(moments(44_998, pods=3))
    assert history.prune(elapsed=0, max_age=10, max_bytes=100 * MIB) == 0
    history.append(moments(2, pods=3, first=44_998))
    assert history.prune(elapsed=10, max_age=10, max_bytes=100 * MIB) == 44_998
    assert [entry.at for entry in history.entries_after(0, limit=10)] == [44_998, 44_999]
    assert not history.last_states(PodUID("uid-0"))
    assert history.last_states(PodUID("uid-1")) == {(PHASE, ""): "44998"}
    # IDs are not reused: a client that follows by ID would confuse two entries.
    assert history.append(moments(1)) == 45_001


def test_it_is_read_in_another_thread_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    history = History.open(path)
    seen: list[int] = []
    is_over = threading.Event()

    def follow() -> None:
        after = 0
        while not is_over.is_set() or len(seen) < 20_000:
            with open_history_reader(path) as reader:
                found = reader.entries_after(after, limit=1_000)
            seen.extend(entry.id for entry in found)
            after = seen[-1] if seen else 0

    thread = threading.Thread(target=follow)
    thread.start()
    for first in range(0, 20_000, 500):
        history.append(moments(500, first=first))
    is_over.set()
    thread.join(60)
    assert seen == list(range(1, 20_001))


def test_of_very_many_moments_of_a_pod_the_newest_are_read_in_order(tmp_path: Path) -> None:
    history = History.open(tmp_path / "history.db")
    history.append(moments(12_000, pods=1))
    found = [entry.id for entry in history.timeline("default", "pod-0")]
    assert found == list(range(2_001, 12_001))


def test_a_file_that_is_not_there_is_not_made_by_reading(tmp_path: Path) -> None:
    path = tmp_path / "with a ? in it.db"
    with pytest.raises(HistoryError, match="cannot read"), open_history_reader(path) as reader:
        reader.entries_after(0, limit=1)
    assert not path.exists()
    History.open(path).close()
    with open_history_reader(path) as reader:
        assert reader.entries_after(0, limit=1) == []


# Failures are not fatal


def update(history_writer: StatusHistoryWriter, name: str, *phases: str) -> None:
    for phase in phases:
        pod = make_pod(name, status=PodStatus(phase=phase))
        history_writer.on_pod_updated(pod, pod.status, is_added=False)


def phases(history: History, name: str) -> list[str]:
    found = history.timeline("default", name)
    return [m.transition.after for m in found if m.transition.kind == PHASE]


async def test_a_full_disk_loses_nothing_and_is_reported(tmp_path: Path) -> None:
    history = History.open(tmp_path / "history.db")
    history_writer = StatusHistoryWriter(history, clock=FakeClock())

    update(history_writer, "old", "Pending")
    await history_writer.write_once()
    disk = sqlite3.connect(tmp_path / "history.db", isolation_level=None)
    disk.execute(
        "CREATE TRIGGER full BEFORE INSERT ON moments "
        "BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
    )
    for number in range(500):
        update(history_writer, f"new-{number}", "Pending", "Running")
    update(history_writer, "old", "Running")
    await history_writer.write_once()
    assert "full" in history_writer.counts.problem
    assert history_writer.counts.waiting == 1_001
    await history_writer.prune_once()
    disk.execute("DROP TRIGGER full")
    disk.close()
    await history_writer.write_once()
    assert history_writer.counts.problem == ""
    assert history_writer.counts.waiting == 0
    assert phases(history, "old") == ["Pending", "Running"]
    assert all(phases(history, f"new-{n}") == ["Pending", "Running"] for n in range(500))


def test_what_a_killed_agent_left_is_opened_without_a_write(tmp_path: Path) -> None:
    """With its journal in place, opening it needs no disk space."""
    path, journal = tmp_path / "history.db", tmp_path / "history.db-wal"
    left = History.open(path)
    before = journal.read_bytes()
    opened = History.open(path)
    assert journal.read_bytes() == before != b""
    opened.close()
    left.close()


async def test_a_file_that_breaks_while_it_is_used_ends_nothing(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    first = History.open(path)
    first.append(moments(5_000))
    first.close()
    history = History.open(path)
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))
    history_writer = StatusHistoryWriter(history, clock=FakeClock(), max_entries=10)

    for number in range(20):
        update(history_writer, f"pod-{number}", "Running")
    await history_writer.write_once()
    await history_writer.prune_once()
    counts = history_writer.counts
    assert counts.problem == ""
    assert (counts.replaced, counts.waiting, counts.overflowed) == (1, 0, 10)
    with open_history_reader(path) as reader:
        assert reader.timeline("default", "pod-1")[0].id > 5_000
    assert (tmp_path / "history.db.damaged").stat().st_size > 4096


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "small"
    disk.mkdir()
    mount, umount = (shutil.which(name) or name for name in ("mount", "umount"))
    options = ["-t", "tmpfs", "-o", "size=1m", "podstatus-test", str(disk)]
    made = subprocess.run([mount, *options], check=False, capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"a disk of its own takes root: {made.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run([umount, "--lazy", str(disk)], check=True)


async def test_a_disk_that_is_really_full_for_a_while_loses_nothing(small_disk: Path) -> None:
    history = History.open(small_disk / "history.db")
    history_writer = StatusHistoryWriter(history, clock=FakeClock(), retention=Retention(days=1))
    filler = small_disk / "filler"

    update(history_writer, "web", "Pending")
    await history_writer.write_once()
    with suppress(OSError), filler.open("ab", buffering=0) as writer:
        while writer.write(b"x" * 512):
            pass
    for number in range(300):
        update(history_writer, f"pod-{number}", "Pending")
    update(history_writer, "web", "Running")
    await history_writer.write_once()
    assert history_writer.counts.waiting > 0
    assert history_writer.counts.problem
    filler.unlink()
    await history_writer.write_once()
    assert history_writer.counts.waiting == 0
    assert phases(history, "web") == ["Pending", "Running"]
    assert history.count() == 2 * 301 + 1
    history.close()


def test_events_that_do_not_fit_are_counted_apart(tmp_path: Path) -> None:
    history_writer = StatusHistoryWriter(
        History.open(tmp_path / "history.db"), clock=FakeClock(), max_entries=1
    )
    update(history_writer, "web", "Pending", "Running")
    history_writer.add_event(make_pod("web"), "Normal", "Started", "Container started", "app")
    assert (history_writer.counts.overflowed, history_writer.counts.lost_events) == (1, 1)


async def test_quiet_pods_do_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podstatus.observe.transitions.tracker.MAX_TRACKED_PODS", 2)
    history = History.open(tmp_path / "history.db")
    history_writer = StatusHistoryWriter(history, clock=FakeClock())
    for name in ("a", "b", "c"):
        update(history_writer, name, "Pending")
    update(history_writer, "a", "Pending", "Running")
    await history_writer.write_once()
    assert history_writer.tracked_pods == 2
    assert phases(history, "a") == ["Pending", "Running"]


def test_who_is_cancelled_while_a_batch_is_written_loses_none_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History.open(tmp_path / "history.db")
    began, may_go = threading.Event(), threading.Event()
    append = history.append

    def slow(given: list[HistoryEntry], nodes: NodeRecords) -> int:
        began.set()
        may_go.wait(30)
        return append(given, nodes)

    async def scene() -> None:
        history_writer = StatusHistoryWriter(history, clock=FakeClock())
        update(history_writer, "web", "Pending")
        monkeypatch.setattr(history, "append", slow)
        task = asyncio.create_task(history_writer.run())
        await asyncio.to_thread(began.wait, 30)
        update(history_writer, "web", "Running")
        task.cancel()
        may_go.set()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(scene())
    assert phases(history, "web") == ["Pending", "Running"]


def test_the_file_is_a_sound_database_with_a_format(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    History.open(path).close()
    database = sqlite3.connect(path)
    assert database.execute("PRAGMA auto_vacuum").fetchone() == (2,)
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(HistoryError, match="format 99, supported is 1"):
        History.open(path)


async def test_a_message_that_was_cut_inside_a_character_is_noted(tmp_path: Path) -> None:
    history = History.open(tmp_path / "history.db")
    history_writer = StatusHistoryWriter(history, clock=FakeClock())
    cut = "gr\u00fc\udcc3"
    pod = make_pod("web", status=PodStatus(phase="Failed", reason="Error", message=cut))
    history_writer.on_pod_updated(pod, pod.status, is_added=False)
    await history_writer.write_once()
    (found,) = [m for m in history.timeline("default", "web") if m.transition.kind == PHASE]
    assert found.transition.message == "gr\u00fc?"
    assert msgspec.json.encode(found)
    assert summarize_pod(pod).message == "gr\u00fc?"


async def test_a_mistake_of_ours_costs_a_batch_and_not_the_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    history = History.open(tmp_path / "history.db")
    history_writer = StatusHistoryWriter(history, clock=FakeClock())

    def broken(_: object, __: object) -> int:
        raise KeyError("a mistake")

    with monkeypatch.context() as patched:
        patched.setattr(history, "append", broken)
        update(history_writer, "web", "Pending", "Running")
        await history_writer.write_once()
    assert "cannot record pod changes: count=2" in caplog.text
    assert history_writer.counts.lost_events == 2
    update(history_writer, "web", "Failed")
    await history_writer.write_once()
    assert phases(history, "web") == ["Failed"]


async def test_what_is_being_written_still_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History.open(tmp_path / "history.db")
    history_writer = StatusHistoryWriter(history, clock=FakeClock())
    append, waiting = history.append, []

    def look(given: list[HistoryEntry], nodes: NodeRecords) -> int:
        waiting.append(history_writer.counts.waiting)
        return append(given, nodes)

    monkeypatch.setattr(history, "append", look)
    update(history_writer, "web", "Pending", "Running")
    await history_writer.write_once()
    assert waiting == [2]
    assert history_writer.counts.waiting == 0
