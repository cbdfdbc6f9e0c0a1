"""Classification of databases by their marker."""

import os
from pathlib import Path

import pytest

from podstatus.apiserver.storage.marker import (
    DatabaseState,
    Marker,
    MarkerFile,
    StorageError,
    boot_id,
    classify_database,
    marker_path,
    rejection_message,
)

MARKER = Marker(cluster="a", boot="b1", version=10)


@pytest.mark.parametrize(
    ("cluster", "version", "marker", "marked", "boot", "verdict"),
    [
        ("", 0, None, False, "b1", DatabaseState.NEW),
        ("", 0, MARKER, True, "b1", DatabaseState.EMPTY),
        ("", 0, MARKER, True, "b2", DatabaseState.EMPTY),
        ("", 0, None, True, "b1", DatabaseState.EMPTY),
        ("a", 10, MARKER, True, "b1", DatabaseState.CURRENT),
        ("a", 11, MARKER, True, "b1", DatabaseState.CURRENT),
        ("a", 10, MARKER, True, "b2", DatabaseState.CURRENT),
        ("a", 9, MARKER, True, "b1", DatabaseState.ROLLED_BACK),
        ("a", 0, MARKER, True, "b1", DatabaseState.ROLLED_BACK),
        ("a", 9, MARKER, True, "b2", DatabaseState.BEHIND),
        ("a", 9, Marker(cluster="a", boot="", version=10), True, "", DatabaseState.BEHIND),
        ("z", 99, MARKER, True, "b1", DatabaseState.OTHER_CLUSTER),
        ("", 99, MARKER, True, "b1", DatabaseState.OTHER_CLUSTER),
        ("a", 5, None, False, "b1", DatabaseState.UNMARKED),
        ("", 5, None, False, "b1", DatabaseState.UNMARKED),
        ("a", 5, None, True, "b1", DatabaseState.UNMARKED),
    ],
)
def test_a_database_is_judged_by_its_marker(
    cluster: str,
    version: int,
    marker: Marker | None,
    marked: bool,
    boot: str,
    verdict: DatabaseState,
) -> None:
    assert classify_database(cluster, version, marker, has_marker=marked, boot=boot) is verdict


@pytest.mark.parametrize(
    "verdict", [DatabaseState.EMPTY, DatabaseState.OTHER_CLUSTER, DatabaseState.ROLLED_BACK]
)
def test_a_refusal_says_what_to_do_and_what_becomes_of_containers(verdict: DatabaseState) -> None:
    message = rejection_message(verdict, Path("/x/objects.db"), 3, MARKER)
    assert "restore" in message
    assert "objects.db-wal" in message
    assert "remove /x/objects.db-marker to" in message
    assert "containers" in message


@pytest.mark.parametrize(
    "verdict",
    [DatabaseState.NEW, DatabaseState.CURRENT, DatabaseState.UNMARKED, DatabaseState.BEHIND],
)
def test_other_databases_are_used(verdict: DatabaseState) -> None:
    assert rejection_message(verdict, Path("/x/objects.db"), 3, MARKER) == ""


def test_the_marker_is_overwritten_as_a_whole(tmp_path: Path) -> None:
    file = MarkerFile(tmp_path / "objects.db")
    assert file.read() == (None, False)
    file.write("a", 7)
    size = marker_path(tmp_path / "objects.db").stat().st_size
    for version in (8, 12345678901, 2**63 - 1, 9):
        file.advance(version)
        expected = Marker(cluster="a", boot=boot_id(), version=version)
        assert MarkerFile(tmp_path / "objects.db").read() == (expected, True)
    assert marker_path(tmp_path / "objects.db").stat().st_size == size
    file.close()


def test_a_marker_that_says_nothing_is_still_there(tmp_path: Path) -> None:
    for content in (b"", b"garbage", b"{}", b"\0" * 200):
        marker_path(tmp_path / "objects.db").write_bytes(content)
        assert MarkerFile(tmp_path / "objects.db").read() == (None, True)


def test_something_else_in_the_place_of_a_marker_is_refused_at_once(tmp_path: Path) -> None:
    path = marker_path(tmp_path / "objects.db")
    os.mkfifo(path)
    with pytest.raises(StorageError, match="not a regular file"):
        MarkerFile(tmp_path / "objects.db").read()
    path.unlink()
    path.mkdir()
    with pytest.raises(StorageError, match="not a regular file"):
        MarkerFile(tmp_path / "objects.db").read()


def test_a_marker_that_was_taken_away_is_noticed(tmp_path: Path) -> None:
    file = MarkerFile(tmp_path / "objects.db")
    assert not file.is_unchanged()
    file.write("a", 1)
    assert file.is_unchanged()
    path = marker_path(tmp_path / "objects.db")
    os.truncate(path, 0)
    assert not file.is_unchanged()
    path.unlink()
    assert not file.is_unchanged()
    file.write("a", 2)
    assert file.is_unchanged()
    file.close()
