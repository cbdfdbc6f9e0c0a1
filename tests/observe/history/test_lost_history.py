"""A history that another program deletes or damages while in use is detected and replaced."""

import asyncio
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from podstatus.observe.history.sqlite_store import History, HistoryError, open_history_reader
from podstatus.observe.history.status_listener import StatusHistoryWriter
from podstatus.testing.builders import make_pod, make_status
from podstatus.testing.clock import FakeClock


def update(writer: StatusHistoryWriter, name: str, phase: str) -> None:
    pod = make_pod(name, status=make_status(phase))
    writer.on_pod_updated(pod, pod.status, is_added=False)


def noted(path: Path, name: str) -> list[tuple[str, str, str]]:
    with open_history_reader(path) as history:
        found = history.timeline("default", name)
    return [(m.transition.kind, m.transition.after_text, m.transition.reason) for m in found]


def truncate(path: Path) -> None:
    os.truncate(path, 0)


def overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(os.urandom(path.stat().st_size))


def replace(path: Path) -> None:
    path.unlink()
    path.write_bytes(b"no database" * 1000)


def halve(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def zero_middle(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\0" * 8192)


def be_another(path: Path) -> None:
    other = History.open(path.with_name("other.db"))
    other.close()
    shutil.copyfile(path.with_name("other.db"), path)


def journal(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def checkpointed(path: Path) -> History:
    """A history with entries in the file and in the journal."""
    history = History.open(path)
    writer = StatusHistoryWriter(history, clock=FakeClock())
    for number in range(500):
        update(writer, f"pod-{number}", "Pending")
    asyncio.run(writer.write_once())
    history.close()
    return History.open(path)


ATTACKS = [Path.unlink, truncate, overwrite, replace, halve, zero_middle, be_another]


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("idle", [True, False])
def test_a_lost_file_is_noticed_and_a_new_one_begins(
    tmp_path: Path, attack: Callable[[Path], None], idle: bool, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "history.db"
    history = checkpointed(path)
    happened: list[str] = []
    writer = StatusHistoryWriter(history, clock=FakeClock(), on_loss=happened.append)

    async def scene() -> None:
        update(writer, "web", "Pending")
        update(writer, "quiet", "Running")
        await writer.write_once()
        newest = history.newest_id()
        attack(path)
        if not idle:
            update(writer, "web", "Running")
            await writer.write_once()
        await writer.check_once()
        await writer.check_once()
        if idle:
            update(writer, "web", "Running")
            await writer.write_once()
        assert history.timeline("default", "quiet")[0].id > newest

    with caplog.at_level(logging.INFO):
        asyncio.run(scene())
    assert (writer.counts.replaced, writer.counts.problem) == (1, "")
    assert [line for line in caplog.messages if "history file is lost" in line] == [
        f"history file is lost, starting a new one: {happened[0]}"
    ]
    assert happened[0].startswith(str(path))
    lost = ("away", "0.000 s", "HistoryLost")
    assert noted(path, "quiet") == [lost, ("seen", "", ""), ("phase", "Running", "")]
    assert noted(path, "web")[:3] == [lost, ("seen", "", ""), ("phase", "Pending", "")]
    assert noted(path, "web")[-1] == ("phase", "Running", "")
    history.close()


@pytest.mark.parametrize("attack", [Path.unlink, truncate, overwrite])
def test_a_lost_journal_is_noticed(tmp_path: Path, attack: Callable[[Path], None]) -> None:
    path = tmp_path / "history.db"
    history = checkpointed(path)
    writer = StatusHistoryWriter(history, clock=FakeClock())

    async def scene() -> None:
        update(writer, "web", "Pending")
        await writer.write_once()
        attack(journal(path))
        await writer.check_once()
        update(writer, "web", "Running")
        await writer.write_once()

    asyncio.run(scene())
    assert writer.counts.problem == ""
    assert noted(path, "web")[-1] == ("phase", "Running", "")
    history.close()
    assert noted(path, "web")[-1] == ("phase", "Running", "")


def test_a_file_that_was_only_touched_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    history = checkpointed(path)
    writer = StatusHistoryWriter(history, clock=FakeClock())
    os.utime(path, (0, 0))
    update(writer, "web", "Pending")
    asyncio.run(writer.write_once())
    assert writer.counts.replaced == 0
    assert noted(path, "pod-1")[0] == ("seen", "", "")
    assert noted(path, "web")[0] == ("seen", "", "")
    history.close()


@pytest.mark.parametrize("special", [Path.mkdir, os.mkfifo])
def test_what_is_in_the_place_of_the_file_is_reported_until_it_is_gone(
    tmp_path: Path, special: Callable[[Path], None]
) -> None:
    path = tmp_path / "history.db"
    history = checkpointed(path)
    writer = StatusHistoryWriter(history, clock=FakeClock())

    async def scene() -> None:
        update(writer, "web", "Pending")
        await writer.write_once()
        path.unlink()
        special(path)
        update(writer, "web", "Running")
        await writer.write_once()
        await writer.check_once()
        assert "not a regular file" in writer.counts.problem
        assert writer.counts.waiting == 1
        path.rmdir() if path.is_dir() else path.unlink()
        await writer.check_once()
        assert writer.counts.problem == ""
        await writer.write_once()
        assert writer.counts.waiting == 0

    asyncio.run(scene())
    assert noted(path, "web")[-1] == ("phase", "Running", "")
    history.close()


def test_a_pipe_in_the_place_of_a_history_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "history.db")
    with pytest.raises(HistoryError, match="not a regular file"):
        History.open(tmp_path / "history.db")
