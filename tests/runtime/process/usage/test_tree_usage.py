"""Disk usage of a tree of files."""

import os
from pathlib import Path

from podstatus.kube.objects.usage import DiskUsage
from podstatus.runtime.process.usage.tree_usage import (
    MAX_DEPTH,
    MAX_ENTRIES,
    split_tree_usage,
)
from tests.runtime.process.usage.filled_files import KI, fill


def _usage(
    folder: Path, *, max_entries: int = MAX_ENTRIES, max_depth: int = MAX_DEPTH
) -> DiskUsage:
    parts = split_tree_usage(folder, lambda _: "all", max_entries=max_entries, max_depth=max_depth)
    assert parts is not None
    return parts["all"]


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_all_files_count(tmp_path: Path) -> None:
    before = _usage(tmp_path)
    fill(tmp_path / "a/b/c", 256 * KI)
    fill(tmp_path / "d", 64 * KI)
    after = _usage(tmp_path)
    assert after.is_complete
    assert 320 * KI <= after.bytes - before.bytes <= 400 * KI
    assert (before.inodes, after.inodes) == (1, 5)


def test_links_are_not_followed_and_hard_links_count_once(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    fill(outside / "big", 1024 * KI)
    mine = fill(inside / "mine", 64 * KI)
    before = _usage(inside)
    (inside / "folder").symlink_to(outside)
    (inside / "file").symlink_to(outside / "big")
    (inside / "round").symlink_to(inside)
    (inside / "again").hardlink_to(mine)
    os.mkfifo(inside / "fifo")
    after = _usage(inside)
    assert after.bytes - before.bytes < 64 * KI
    assert after.inodes - before.inodes == 4


def test_a_link_in_place_of_the_folder_leads_nowhere(tmp_path: Path) -> None:
    fill(tmp_path / "out/big", 64 * KI)
    (tmp_path / "pod").symlink_to(tmp_path / "out")
    assert split_tree_usage(tmp_path / "pod", lambda _: "") is None
    assert split_tree_usage(tmp_path / "nothing", lambda _: "") is None


def test_too_many_entries_give_a_lower_bound(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / str(number)).touch()
    assert _usage(tmp_path, max_entries=19) == DiskUsage(
        bytes=_usage(tmp_path).bytes, inodes=20, is_complete=False
    )
    assert _usage(tmp_path, max_entries=20).is_complete


def test_too_deep_folders_are_left_out_and_nothing_stays_open(tmp_path: Path) -> None:
    (tmp_path / "/".join("abcde")).mkdir(parents=True)
    fill(tmp_path / "file", KI)
    before = _open_files()
    usage = _usage(tmp_path, max_depth=4)
    assert (usage.inodes, usage.is_complete) == (6, False)
    assert _usage(tmp_path, max_depth=5).is_complete
    assert _open_files() == before


def test_parts_are_separate_and_unnamed_ones_are_left_out(tmp_path: Path) -> None:
    fill(tmp_path / "log", 64 * KI)
    fill(tmp_path / "data/file", 256 * KI)
    fill(tmp_path / "other/file", 1024 * KI)
    parts = split_tree_usage(tmp_path, {"": "data", "data": "data", "log": "log"}.get)
    assert parts is not None
    assert parts.keys() == {"data", "log"}
    assert (parts["log"].inodes, parts["data"].inodes) == (1, 3)
    assert 64 * KI <= parts["log"].bytes < 80 * KI
    assert 256 * KI <= parts["data"].bytes < 300 * KI
