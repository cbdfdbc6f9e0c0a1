"""Checkpoints survive killed writers; a write that fails has no effect."""

import os
import random
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from podstatus.checkpoint.allocation_checkpoint import FileState
from podstatus.checkpoint.errors import CheckpointWriteError
from podstatus.checkpoint.formats import KUBELET_V1_28, KUBELET_V1_36, CheckpointFormat
from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.scalars.quantity import Quantity
from tests.checkpoint import victims

KILLS = 500
FORMATS = pytest.mark.parametrize("format", [KUBELET_V1_36, KUBELET_V1_28], ids=["v1.36", "v1.28"])


def cpu(amount: int) -> ResourceRequirements:
    return ResourceRequirements(requests={"cpu": Quantity(str(amount))})


@pytest.fixture
def open_folder() -> Iterator[str]:
    """Return a directory that every user can access; pytest's are private."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield folder


@pytest.mark.slow
def test_a_writer_that_is_killed_leaves_what_it_wrote_last(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    sys.stdout.write(f"seed {seed}")
    halfway = int(victims.alone(victims.kill_writers, str(tmp_path), KILLS, seed))
    # Without a kill during a write, the test would prove nothing.
    assert halfway >= KILLS // 100


def test_a_text_is_on_the_disk_before_it_takes_the_name_and_the_name_before_the_call_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test cannot cause a power failure, so it checks the order of the system calls."""
    state = FileState(tmp_path)
    state.set_resize_status("u", "old")
    steps: list[tuple[str, bool]] = []

    def record(file: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(file).st_mode) else "text"
        steps.append((kind, b"new" in (tmp_path / "podstatus_resize_state").read_bytes()))

    monkeypatch.setattr(os, "fsync", record)
    state.set_resize_status("u", "new")
    assert steps == [("text", False), ("folder", True)]


def test_a_full_disk_changes_nothing(tmp_path: Path) -> None:
    victims.alone(victims.fill_disk, str(tmp_path))


def test_a_read_only_folder_changes_nothing(open_folder: str) -> None:
    victims.alone(victims.use_read_only_folder, open_folder)


def test_a_file_that_may_not_be_read_is_left_alone(open_folder: str) -> None:
    victims.alone(victims.use_secret_file, open_folder)


def test_a_file_where_the_folder_was_changes_nothing(tmp_path: Path) -> None:
    state = FileState(tmp_path / "state")
    state.set_resize_status("u", "Deferred")
    (tmp_path / "state").rename(tmp_path / "old")
    (tmp_path / "state").write_text("in the way")
    with pytest.raises(CheckpointWriteError, match="Not a directory; nothing was changed"):
        state.set_resize_status("u", "Infeasible")
    assert state.resize_status("u") == "Deferred"
    (tmp_path / "state").unlink()
    state.set_resize_status("u", "Infeasible")
    assert FileState(tmp_path / "state").resize_status("u") == "Infeasible"


def test_a_folder_where_the_file_was_changes_nothing(tmp_path: Path) -> None:
    state = FileState(tmp_path)
    state.restore()
    (tmp_path / "podstatus_resize_state").mkdir()
    with pytest.raises(CheckpointWriteError, match="Is a directory"):
        state.set_resize_status("u", "Deferred")
    assert state.resize_status("u") is None
    assert [path.name for path in tmp_path.iterdir()] == ["podstatus_resize_state"]


def test_a_failed_first_write_of_v1_28_stops_the_restore(tmp_path: Path) -> None:
    # A dangling link: there is no file to read, and the directory cannot be created.
    (tmp_path / "state").symlink_to(tmp_path / "nowhere" / "state")
    with pytest.raises(CheckpointWriteError):
        FileState(tmp_path / "state", format=KUBELET_V1_28).restore()


def test_a_removal_that_cannot_be_stored_is_made_up_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state = FileState(tmp_path / "state", format=KUBELET_V1_28)
    state.set_resize_status("gone", "Deferred")
    (tmp_path / "state").rename(tmp_path / "away")
    (tmp_path / "state").write_text("in the way")
    state.remove_pod("gone")
    assert state.resize_status("gone") is None
    assert (
        "cannot store the removal of an allocation, will retry with the next change" in caplog.text
    )
    (tmp_path / "state").unlink()
    (tmp_path / "away").rename(tmp_path / "state")
    state.set_resize_status("new", "Deferred")
    again = FileState(tmp_path / "state", format=KUBELET_V1_28)
    assert again.allocations().resize_statuses == {"new": "Deferred"}


@FORMATS
def test_threads_lose_nothing(tmp_path: Path, format: CheckpointFormat) -> None:
    state = FileState(tmp_path, format=format)
    errors: list[BaseException] = []

    def work(worker: int) -> None:
        try:
            for number in range(1, 6):
                state.allocated.set_container_resources(f"u{worker % 2}", f"c{worker}", cpu(number))
                state.set_resize_status(f"w{worker}", f"word {number}")
                assert state.allocated.container_resources(f"u{worker % 2}", f"c{worker}") == cpu(
                    number
                )
                state.remove_pod(f"unknown{worker}")
        except BaseException as error:  # noqa: BLE001 - re-raised by the test
            errors.append(error)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    again = FileState(tmp_path, format=format)
    assert again.allocations() == state.allocations()
    restored = {
        name: resources
        for info in again.allocated.pods().values()
        for name, resources in info.container_resources.items()
    }
    assert restored == {f"c{worker}": cpu(5) for worker in range(8)}
    assert again.allocations().resize_statuses == {f"w{worker}": "word 5" for worker in range(8)}


def test_readers_do_not_wait_for_a_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = FileState(tmp_path)
    state.set_resize_status("u", "Deferred")
    writing, read = threading.Event(), threading.Event()
    fsync = os.fsync

    def slow_fsync(file: int) -> None:
        writing.set()
        assert read.wait(60)
        fsync(file)

    monkeypatch.setattr(os, "fsync", slow_fsync)
    writer = threading.Thread(target=state.set_resize_status, args=("u", "Infeasible"))
    writer.start()
    assert writing.wait(60)
    assert state.resize_status("u") == "Deferred"
    read.set()
    writer.join()
    assert state.resize_status("u") == "Infeasible"
