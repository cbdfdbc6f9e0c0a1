"""Final statuses survive killed writers until dropped; damaged files do not affect others."""

import asyncio
import os
import random
import stat
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from podstatus.checkpoint.errors import CheckpointWriteError, UnreadableCheckpointError
from podstatus.checkpoint.formats.v1_36 import wrap
from podstatus.checkpoint.outbox_files import FileOutbox
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.kube.scalars.time import Time
from podstatus.pods.pod_manager import PodManager
from podstatus.status.manager import StatusManager
from podstatus.status.ports import OutboxEntry
from podstatus.testing.builders import ended, make_pod, make_status
from podstatus.testing.fakes import FakeDeletionSafety
from podstatus.testing.in_memory_pod_api import InMemoryPodApi
from tests.checkpoint import victims

KILLS = 100
STATUS = make_status("Failed", ended("app", 3))


def entry(uid: str = "u", status: PodStatus = STATUS) -> OutboxEntry:
    return OutboxEntry(uid=PodUID(uid), namespace="n", name="p", status=status)


def opened(folder: Path) -> FileOutbox[OutboxEntry]:
    return FileOutbox(folder, OutboxEntry)


def load(folder: Path) -> list[OutboxEntry]:
    """Return what the next process of the node loads."""
    return opened(folder).load()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_whether_a_status_was_the_last_is_kept_with_it(tmp_path: Path) -> None:
    outbox = opened(tmp_path)
    outbox.store(structs.replace(entry(), finished=False))
    assert [loaded.finished for loaded in load(tmp_path)] == [False]
    outbox.store(entry())
    assert [loaded.finished for loaded in load(tmp_path)] == [True]
    # Earlier versions stored only final statuses, without this field.
    assert "alive" not in (tmp_path / "u.json").read_text()


def test_what_was_kept_is_found_until_it_is_dropped(tmp_path: Path) -> None:
    outbox = opened(tmp_path / "outbox")
    assert load(tmp_path / "outbox") == []
    outbox.store(entry("a"))
    outbox.store(entry("b"))
    assert load(tmp_path / "outbox") == [entry("a"), entry("b")]
    outbox.drop(PodUID("a"))
    assert load(tmp_path / "outbox") == [entry("b")]


def test_the_newest_status_of_a_pod_is_the_one_that_is_kept(tmp_path: Path) -> None:
    outbox = opened(tmp_path)
    outbox.store(entry())
    newer = entry(status=make_status("Succeeded"))
    outbox.store(newer)
    assert load(tmp_path) == [newer]


def test_to_drop_what_is_not_there_is_no_error(tmp_path: Path) -> None:
    opened(tmp_path).drop(PodUID("unknown"))
    opened(tmp_path / "no-folder").drop(PodUID("unknown"))
    assert not (tmp_path / "no-folder").exists()


def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    opened(tmp_path / "outbox").store(entry())
    assert stat.S_IMODE((tmp_path / "outbox").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "outbox" / "u.json").stat().st_mode) == 0o600


def test_times_come_back_as_they_travel(tmp_path: Path) -> None:
    status = structs.replace(STATUS, start_time=Time.parse("2024-01-31T09:30:00.5Z"))
    opened(tmp_path).store(entry(status=status))
    (again,) = load(tmp_path)
    assert again.status.start_time == Time.parse("2024-01-31T09:30:00Z")


@settings(max_examples=25)  # each example syncs to disk
@given(st.lists(st.text(min_size=1), unique=True, max_size=5))
def test_any_uid_has_a_file_of_its_own(
    tmp_path_factory: pytest.TempPathFactory, uids: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("outbox")
    outbox = opened(folder)
    for uid in uids:
        outbox.store(entry(uid))
    assert {loaded.uid for loaded in load(folder)} == set(uids)
    assert all(path.parent == folder for path in folder.rglob("*"))
    for uid in uids:
        outbox.drop(PodUID(uid))
    assert names(folder) == []


@pytest.mark.parametrize("uid", ["", None])
def test_what_has_no_uid_is_refused(tmp_path: Path, uid: str) -> None:
    with pytest.raises((TypeError, ValueError), match="UID"):
        opened(tmp_path).store(entry(uid))


def test_a_folder_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="the directory name is empty"):
        FileOutbox("", OutboxEntry)


# Damage


def damaged_texts() -> dict[str, bytes]:
    data = '{"uid":"bad","namespace":"n","name":"p","status":{"phase":"Failed"}}'
    whole = wrap(data)
    return {
        "empty": b"",
        "cut": whole[:-10],
        "one bit": whole.replace(b"Failed", b"Gailed"),
        "not JSON": b"\x00\xff",
        "not an envelope": data.encode(),
        "another pod": wrap(data.replace("bad", "good")),
        "no pod": wrap("{}"),
        "no status": wrap('{"uid":"bad","status":7}'),
        "no JSON inside": wrap("x"),
    }


@pytest.mark.parametrize("what", damaged_texts())
def test_what_is_damaged_is_set_aside_and_the_rest_is_found(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    opened(tmp_path).store(entry("a"))
    opened(tmp_path).store(entry("z"))
    (tmp_path / "bad.json").write_bytes(damaged_texts()[what])
    assert load(tmp_path) == [entry("a"), entry("z")]
    assert f"may not be reported: file={tmp_path}/bad.json" in caplog.text
    assert names(tmp_path) == ["a.json", "bad.json.damaged", "z.json"]
    caplog.clear()
    assert load(tmp_path) == [entry("a"), entry("z")]
    assert caplog.text == ""


def test_what_cannot_be_read_is_left_alone_and_the_rest_is_found(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opened(tmp_path).store(entry("a"))
    (tmp_path / "bad.json").mkdir()
    assert load(tmp_path) == [entry("a")]
    assert "cannot read final status" in caplog.text
    assert names(tmp_path) == ["a.json", "bad.json"]


def test_what_cannot_be_set_aside_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "bad.json").write_bytes(b"")
    (tmp_path / "bad.json.damaged").mkdir()
    assert load(tmp_path) == []
    assert "cannot rename damaged final status" in caplog.text


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    for name in ("notes.txt", ".hidden.json"):
        (tmp_path / name).write_text("mine")
    assert load(tmp_path) == []
    assert names(tmp_path) == [".hidden.json", "notes.txt"]


def test_a_file_in_place_of_the_directory_is_reported(tmp_path: Path) -> None:
    (tmp_path / "outbox").write_text("in the way")
    outbox = opened(tmp_path / "outbox")
    with pytest.raises(UnreadableCheckpointError, match="Not a directory"):
        outbox.load()
    with pytest.raises(CheckpointWriteError, match="nothing was changed"):
        outbox.store(entry())


# Crashes


@pytest.mark.slow
def test_a_killed_process_loses_no_stored_status_and_no_removal(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    sys.stdout.write(f"seed {seed}")
    halfway = int(victims.alone(victims.kill_keepers, str(tmp_path), KILLS, seed))
    # Without a kill during a write, the test would prove nothing.
    assert halfway >= KILLS // 100


def test_a_text_is_on_the_disk_before_it_takes_the_name_and_a_removal_before_the_call_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test cannot cause a power failure, so it checks the order of the system calls."""
    outbox = opened(tmp_path)
    steps: list[tuple[str, bool]] = []

    def record(file: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(file).st_mode) else "text"
        steps.append((kind, (tmp_path / "u.json").exists()))

    monkeypatch.setattr(os, "fsync", record)
    outbox.store(entry())
    assert steps == [("text", False), ("folder", True)]
    steps.clear()
    outbox.drop(PodUID("u"))
    assert steps == [("folder", False)]


def test_a_removal_that_may_be_lost_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox = opened(tmp_path)
    outbox.store(entry())

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(CheckpointWriteError, match="Input/output error") as raised:
        outbox.drop(PodUID("u"))
    assert raised.value.replaced


def test_a_slow_write_does_not_come_after_the_removal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox = opened(tmp_path)
    writing, go_on = threading.Event(), threading.Event()
    fsync = os.fsync

    def slow_fsync(file: int) -> None:
        writing.set()
        assert go_on.wait(60)
        fsync(file)

    monkeypatch.setattr(os, "fsync", slow_fsync)
    keeper = threading.Thread(target=outbox.store, args=(entry(),))
    keeper.start()
    assert writing.wait(60)
    dropper = threading.Thread(target=outbox.drop, args=(PodUID("u"),))
    dropper.start()
    go_on.set()
    keeper.join()
    dropper.join()
    assert load(tmp_path) == []


def test_threads_lose_nothing(tmp_path: Path) -> None:
    outbox = opened(tmp_path)

    def work(worker: int) -> None:
        for number in range(10):
            outbox.store(entry(f"{worker}-{number}"))
            if number % 2:
                outbox.drop(PodUID(f"{worker}-{number}"))

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stored = {f"{worker}-{number}" for worker in range(8) for number in range(0, 10, 2)}
    assert {undelivered.uid for undelivered in load(tmp_path)} == stored


# With the status manager


async def until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not await asyncio.to_thread(happened):
            pass


@asynccontextmanager
async def one_life(folder: Path, api: InMemoryPodApi) -> AsyncIterator[StatusManager]:
    """Run a status manager that is killed at the end."""
    directory = PodManager()
    for pod in api.pods():
        directory.update_pod(pod)
    manager = StatusManager(api, directory, FakeDeletionSafety(), outbox=opened(folder))
    loop = asyncio.create_task(manager.run())
    yield manager
    loop.cancel()
    await asyncio.gather(loop, return_exceptions=True)


async def test_the_next_process_delivers_what_an_earlier_one_could_not(tmp_path: Path) -> None:
    pod = make_pod("p", restart_policy="Never")
    api = InMemoryPodApi(pod)
    api.fail("patch", "default", "p", code=503, times=99)
    async with one_life(tmp_path, api) as manager:
        manager.set_pod_status(pod, make_status("Succeeded", ended("app"), Ready="False"))
        manager.terminate_pod(pod)
        await until(lambda: names(tmp_path) == ["uid-p.json"])

    restarted = InMemoryPodApi(pod)
    async with one_life(tmp_path, restarted):
        await until(lambda: names(tmp_path) == [])
    (stored,) = restarted.pods()
    assert stored.status.phase == "Succeeded"
