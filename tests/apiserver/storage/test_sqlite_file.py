"""A database that lost its objects is not taken for a new one, at the start or while in use."""

import os
import shutil
import sqlite3
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from podstatus.apiserver.storage import marker, sqlite_file
from podstatus.apiserver.storage.marker import VERSION_BUMP, marker_path
from podstatus.apiserver.storage.store import StorageError, StorageKey, Store
from podstatus.apiserver.strategies.base import Document

A, B = StorageKey("default", "a"), StorageKey("default", "b")
KILLED = 9


def opened(path: Path, cluster: str = "") -> Store:
    return Store.open(path, lambda _, __: {}, cluster=cluster)


def named(key: StorageKey, **more: Any) -> Document:
    return {"metadata": {"name": key.name, "namespace": key.namespace}} | more


def journal(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a database with one object, closed by its server."""
    path = tmp_path / "objects.db"
    store = opened(path)
    store.put("pods", A, named(A))
    store.close()
    return path


def in_child(work: Callable[[], object]) -> int:
    """Run in a child process that exits without closing anything; return its exit code."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:  # noqa: BLE001 - visible in the exit code
            traceback.print_exc()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def truncate(path: Path) -> None:
    os.truncate(path, 0)


def be_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def be_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def be_garbage(path: Path) -> None:
    path.write_bytes(os.urandom(path.stat().st_size))


def zero_header(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"\0" * 100)


def halve(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def zero_middle(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\0" * 4096)


def be_another(path: Path) -> None:
    other = path.with_name("other.db")
    store = opened(other)
    store.put("pods", B, named(B))
    store.close()
    shutil.copyfile(other, path)


ATTACKS = [
    (truncate, "is empty or missing"),
    (Path.unlink, "is empty or missing"),
    (be_folder, "not a regular file"),
    (be_pipe, "not a regular file"),
    (be_garbage, "cannot use the database"),
    (zero_header, "cannot use the database"),
    (halve, "cannot use the database"),
    (zero_middle, "cannot use the database|is damaged"),
    (be_another, "is not the database"),
]
NAMES = [attack.__name__ for attack, _ in ATTACKS]


@pytest.mark.parametrize(("attack", "why"), ATTACKS, ids=NAMES)
def test_a_database_without_its_objects_is_refused(
    path: Path, attack: Callable[[Path], None], why: str
) -> None:
    copy = path.read_bytes()
    attack(path)
    for _ in range(2):  # the first rejection has not changed it
        with pytest.raises(StorageError, match=why) as refused:
            opened(path)
        assert "restore" in str(refused.value)
    if path.is_dir():
        path.rmdir()
    path.unlink(missing_ok=True)
    path.write_bytes(copy)
    store = opened(path)
    assert store.get("pods", A) is not None
    assert store.version == 1
    store.close()


@pytest.mark.parametrize("attack", [truncate, Path.unlink])
def test_without_the_marker_a_new_cluster_begins(
    path: Path, attack: Callable[[Path], None]
) -> None:
    store = opened(path)
    before = store.cluster
    store.close()
    attack(path)
    marker_path(path).unlink()
    store = opened(path)
    assert (store.version, list(store.objects("pods"))) == (0, [])
    assert store.cluster not in ("", before)
    store.close()
    truncate(path)
    with pytest.raises(StorageError, match="is empty or missing"):
        opened(path)


def test_a_refusal_leaves_the_journal_alone(path: Path) -> None:
    assert in_child(lambda: opened(path).put("pods", B, named(B))) == 0
    content = journal(path).read_bytes()
    assert content
    truncate(path)
    with pytest.raises(StorageError, match="is empty or missing"):
        opened(path)
    assert journal(path).read_bytes() == content


@pytest.mark.parametrize("attack", [truncate, Path.unlink])
def test_a_lost_journal_is_refused(path: Path, attack: Callable[[Path], None]) -> None:
    assert in_child(lambda: opened(path).put("pods", B, named(B))) == 0
    attack(journal(path))
    with pytest.raises(
        StorageError, match="holds changes up to version 1, but version 2 was acknowledged"
    ):
        opened(path)


def test_an_older_copy_is_used_once_the_marker_is_gone(path: Path) -> None:
    copy = path.read_bytes()
    store = opened(path)
    store.put("pods", B, named(B))
    store.close()
    path.write_bytes(copy)
    with pytest.raises(StorageError, match="to use this one: pods created since"):
        opened(path)
    marker_path(path).unlink()
    store = opened(path)
    assert store.get("pods", B) is None
    assert store.put("pods", B, named(B)).version == 1 + VERSION_BUMP + 1
    store.close()
    store = opened(path)  # the bump is in the database, too
    assert store.version == VERSION_BUMP + 2
    store.close()


def test_after_a_power_cut_an_older_database_is_used(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert in_child(lambda: opened(path).put("pods", B, named(B))) == 0
    journal(path).unlink()
    boot = path.with_name("boot_id")
    boot.write_text("another\n")
    monkeypatch.setattr(marker, "_BOOT_ID", boot)
    store = opened(path)
    assert store.get("pods", A) is not None
    assert store.version == 2 + VERSION_BUMP
    store.close()
    opened(path).close()


def test_a_database_of_an_earlier_version_gets_a_marker(tmp_path: Path) -> None:
    path = tmp_path / "objects.db"
    with sqlite3.connect(path) as old:
        old.executescript(
            """CREATE TABLE objects (
                resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
                version INTEGER NOT NULL, data BLOB NOT NULL, UNIQUE (resource, namespace, name));
            CREATE TABLE last_deletion (
                one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL);
            INSERT INTO last_deletion VALUES (1, 4);
            INSERT INTO objects VALUES
                ('pods', 'default', 'a', 5, CAST('{"metadata": {"name": "a"}}' AS BLOB));
            PRAGMA user_version = 1;"""
        )
    old.close()
    store = opened(path)
    assert store.get("pods", A) is not None
    assert store.version == 5 + VERSION_BUMP
    store.close()
    truncate(path)
    with pytest.raises(StorageError, match="is empty or missing"):
        opened(path)


def test_another_cluster_than_the_expected_one_is_refused(path: Path) -> None:
    store = opened(path)
    cluster = store.cluster
    store.close()
    opened(path, cluster).close()
    for file in path.parent.glob("objects.db*"):
        file.unlink()
    with pytest.raises(StorageError, match="whose pods run on this node"):
        opened(path, cluster)


@pytest.mark.parametrize(
    "attack",
    [truncate, Path.unlink, be_pipe, be_garbage, zero_header, halve, zero_middle, be_another],
)
def test_files_that_are_changed_while_in_use_are_written_again(
    path: Path, attack: Callable[[Path], None]
) -> None:
    for file in (path, journal(path)):
        store = opened(path)
        cluster = store.cluster
        store.put("pods", A, named(A))
        attack(file)
        stored = store.put("pods", B, named(B)).version
        # A server that is killed now has lost nothing.
        assert in_child(partial(check_copy, path, stored, cluster)) == 0
        attack(file)
        store.close()
        store = opened(path)
        assert [it.key for it in store.objects("pods")] == [A, B]
        assert (store.version, store.cluster) == (stored, cluster)
        store.delete("pods", B, named(B))
        store.close()


def check_copy(path: Path, version: int, cluster: str) -> None:
    """Open a copy: the lock of the server does not allow to open the original."""
    copy = path.parent / "copy"
    copy.mkdir(exist_ok=True)
    for file in path.parent.glob("objects.db*"):
        shutil.copyfile(file, copy / file.name)
    store = opened(copy / path.name)
    assert [it.key for it in store.objects("pods")] == [A, B]
    assert (store.version, store.cluster) == (version, cluster)
    store.close()
    shutil.rmtree(copy)


def test_a_marker_that_is_removed_while_in_use_is_written_again(path: Path) -> None:
    store = opened(path)
    marker_path(path).unlink()
    store.put("pods", B, named(B))
    assert marker_path(path).exists()
    store.close()


def test_what_cannot_be_written_again_is_refused_until_it_can(path: Path) -> None:
    store = opened(path)
    be_folder(path)
    with pytest.raises(StorageError, match="cannot be rewritten"):
        store.put("pods", B, named(B))
    assert store.get("pods", B) is None
    assert store.get("pods", A) is not None
    path.rmdir()
    store.put("pods", B, named(B))
    store.close()
    store = opened(path)
    assert [it.key for it in store.objects("pods")] == [A, B]
    store.close()


TRACED = (sqlite_file.__file__, marker.__file__)


class KillAt:
    """Ends the process at the n-th executed line of these modules, counted from 0."""

    def __init__(self, line: int) -> None:
        self._left = line

    def __call__(self, frame: FrameType, event: str, _: Any) -> "KillAt | None":
        if frame.f_code.co_filename not in TRACED:
            return None
        if event == "line":
            if self._left == 0:
                os._exit(KILLED)
            self._left -= 1
        return self


@pytest.mark.slow
def test_killed_at_any_line_of_the_first_start_it_starts_again(tmp_path: Path) -> None:
    def first_start(line: int, path: Path) -> None:
        sys.settrace(KillAt(line))
        store = opened(path)
        store.put("pods", A, named(A))

    line, code = 0, KILLED
    while code == KILLED:
        folder = tmp_path / str(line)
        folder.mkdir()
        path = folder / "objects.db"
        code = in_child(partial(first_start, line, path))
        store = opened(path)
        store.put("pods", B, named(B))
        store.close()
        truncate(path)
        with pytest.raises(StorageError, match="is empty or missing"):
            opened(path)
        line += 1
    assert code == 0
    assert line > 50


@pytest.mark.slow
def test_killed_at_any_line_of_a_rewrite_nothing_is_taken_for_new(path: Path) -> None:
    def rewrite(line: int, path: Path) -> None:
        store = opened(path)
        path.unlink()
        sys.settrace(KillAt(line))
        store.put("pods", B, named(B))

    line, code, used = 0, KILLED, 0
    while code == KILLED:
        folder = path.parent / str(line)
        folder.mkdir()
        for file in path.parent.glob("objects.db*"):
            shutil.copyfile(file, folder / file.name)
        copy = folder / path.name
        code = in_child(partial(rewrite, line, copy))
        if copy.exists():
            store = opened(copy)
            assert store.get("pods", A) is not None
            store.close()
            used += 1
        else:
            with pytest.raises(StorageError, match="is empty or missing"):
                opened(copy)
        line += 1
    assert code == 0
    assert used > 10
