"""Disk usage of a pod's folder."""

import asyncio
import os
import queue
import threading
from pathlib import Path

import pytest

from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.process.usage.disk_usage import DiskUsageCache, folder_size
from podstatus.testing.clock import FakeClock

A, B = PodUID("uid-a"), PodUID("uid-b")
KI = 1024


def _fill(file: Path, count: int) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as opened:
        opened.write(os.urandom(count))
        os.fsync(opened.fileno())  # some filesystems allocate blocks only when they write
    return file


def _empty(folder: Path) -> int:
    size = folder_size(folder)
    assert size is not None
    return size


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_all_files_count(tmp_path: Path) -> None:
    before = _empty(tmp_path)
    _fill(tmp_path / "a/b/c", 256 * KI)
    _fill(tmp_path / "d", 64 * KI)
    after = folder_size(tmp_path)
    assert after is not None
    assert 320 * KI <= after - before <= 400 * KI


def test_links_are_not_followed_and_hard_links_count_once(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    _fill(outside / "big", 1024 * KI)
    mine = _fill(inside / "mine", 64 * KI)
    before = _empty(inside)
    (inside / "folder").symlink_to(outside)
    (inside / "file").symlink_to(outside / "big")
    (inside / "round").symlink_to(inside)
    (inside / "again").hardlink_to(mine)
    os.mkfifo(inside / "fifo")
    after = folder_size(inside)
    assert after is not None
    assert after - before < 64 * KI


def test_a_link_in_place_of_the_folder_leads_nowhere(tmp_path: Path) -> None:
    _fill(tmp_path / "out/big", 64 * KI)
    (tmp_path / "pod").symlink_to(tmp_path / "out")
    assert folder_size(tmp_path / "pod") is None
    assert folder_size(tmp_path / "nothing") is None


def test_what_is_too_much_is_not_counted(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / str(number)).touch()
    assert folder_size(tmp_path, max_entries=19) is None
    assert folder_size(tmp_path, max_entries=20) is not None


def test_who_digs_too_deep_is_not_counted_and_nothing_stays_open(tmp_path: Path) -> None:
    (tmp_path / "/".join("abcde")).mkdir(parents=True)
    before = _open_files()
    assert folder_size(tmp_path, max_depth=4) is None
    assert folder_size(tmp_path, max_depth=5) is not None
    assert _open_files() == before


class Disk:
    """Sizes that are measured when the test allows it."""

    def __init__(self) -> None:
        self._clock = FakeClock()
        self.requested: list[str] = []
        self.answer = threading.Event()
        self._scans = queue.Queue[threading.Thread]()
        self.sizes = DiskUsageCache(
            lambda uid: Path("/pods") / uid, clock=self._clock, size_of=self._size_of
        )

    def pass_time(self, seconds: float) -> None:
        asyncio.run(self._clock.advance(seconds))

    def _size_of(self, folder: Path) -> int:
        self._scans.put(threading.current_thread())
        self.requested.append(folder.name)
        assert self.answer.wait(90)
        return 1000 * len(self.requested)

    def finish(self) -> None:
        scan = self._scans.get(timeout=90)
        self.answer.set()
        scan.join(90)
        self.answer.clear()


@pytest.fixture
def disk() -> Disk:
    return Disk()


def test_a_hanging_disk_blocks_no_caller(disk: Disk) -> None:
    for _ in range(5):
        assert disk.sizes.sizes({A: 0}) == {A: None}
        disk.pass_time(1000)
    assert threading.active_count() < 20
    disk.finish()
    assert disk.requested == ["uid-a"]
    assert disk.sizes.sizes({A: 0}) == {A: 1000}


def test_what_was_counted_holds_for_a_minute(disk: Disk) -> None:
    disk.sizes.sizes({A: 0})
    disk.finish()
    for _ in range(6):
        assert disk.sizes.sizes({A: 0}) == {A: 1000}
        disk.pass_time(10)
    assert disk.requested == ["uid-a"]
    disk.pass_time(1)
    assert disk.sizes.sizes({A: 0}) == {A: 1000}
    disk.finish()
    assert disk.sizes.sizes({A: 0}) == {A: 2000}


def test_new_pods_are_counted_and_gone_ones_forgotten(disk: Disk) -> None:
    disk.sizes.sizes({A: 0})
    disk.finish()
    assert disk.sizes.sizes({B: 0}) == {B: None}
    disk.finish()
    assert disk.sizes.sizes({B: 0}) == {B: 2000}
    assert disk.sizes.sizes({A: 0}) == {A: None}
    disk.finish()
