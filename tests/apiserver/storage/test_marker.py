"""What a database is, given the marker beside it."""

import os
from pathlib import Path

import pytest

from podstatus.apiserver.storage.marker import (
    Marker,
    MarkerError,
    MarkerFile,
    Verdict,
    boot_id,
    judge,
    marker_path,
    refusal,
)

MARKER = Marker(cluster="a", boot="b1", version=10)


@pytest.mark.parametrize(
    ("cluster", "version", "marker", "marked", "boot", "verdict"),
    [
        ("", 0, None, False, "b1", Verdict.NEW),
        ("", 0, MARKER, True, "b1", Verdict.EMPTY),
        ("", 0, MARKER, True, "b2", Verdict.EMPTY),
        ("", 0, None, True, "b1", Verdict.EMPTY),
        ("a", 10, MARKER, True, "b1", Verdict.KNOWN),
        ("a", 11, MARKER, True, "b1", Verdict.KNOWN),
        ("a", 10, MARKER, True, "b2", Verdict.KNOWN),
        ("a", 9, MARKER, True, "b1", Verdict.OLDER),
        ("a", 0, MARKER, True, "b1", Verdict.OLDER),
        ("a", 9, MARKER, True, "b2", Verdict.BEHIND),
        ("a", 9, Marker(cluster="a", boot="", version=10), True, "", Verdict.BEHIND),
        ("z", 99, MARKER, True, "b1", Verdict.ANOTHER),
        ("", 99, MARKER, True, "b1", Verdict.ANOTHER),
        ("a", 5, None, False, "b1", Verdict.UNMARKED),
        ("", 5, None, False, "b1", Verdict.UNMARKED),
        ("a", 5, None, True, "b1", Verdict.UNMARKED),
    ],
)
def test_a_database_is_judged_by_its_marker(
    cluster: str, version: int, marker: Marker | None, marked: bool, boot: str, verdict: Verdict
) -> None:
    assert judge(cluster, version, marker, marked=marked, boot=boot) is verdict


@pytest.mark.parametrize("verdict", [Verdict.EMPTY, Verdict.ANOTHER, Verdict.OLDER])
def test_a_refusal_says_what_to_do_and_what_becomes_of_containers(verdict: Verdict) -> None:
    said = refusal(verdict, Path("/x/objects.db"), 3, MARKER)
    assert "restore" in said
    assert "objects.db-wal" in said
    assert "remove /x/objects.db-marker to" in said
    assert "containers" in said


@pytest.mark.parametrize("verdict", [Verdict.NEW, Verdict.KNOWN, Verdict.UNMARKED, Verdict.BEHIND])
def test_other_databases_are_used(verdict: Verdict) -> None:
    assert refusal(verdict, Path("/x/objects.db"), 3, MARKER) == ""


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
    with pytest.raises(MarkerError, match="not a regular file"):
        MarkerFile(tmp_path / "objects.db").read()
    path.unlink()
    path.mkdir()
    with pytest.raises(MarkerError, match="not a regular file"):
        MarkerFile(tmp_path / "objects.db").read()


def test_a_marker_that_was_taken_away_is_noticed(tmp_path: Path) -> None:
    file = MarkerFile(tmp_path / "objects.db")
    assert not file.is_there()
    file.write("a", 1)
    assert file.is_there()
    path = marker_path(tmp_path / "objects.db")
    os.truncate(path, 0)
    assert not file.is_there()
    path.unlink()
    assert not file.is_there()
    file.write("a", 2)
    assert file.is_there()
    file.close()
