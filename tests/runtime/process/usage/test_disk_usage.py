"""Disk usage of pods: what belongs to which container and volume, and when it is measured."""

import asyncio
import queue
import threading
from pathlib import Path

import pytest

from podstatus.base.system_clock import SystemClock
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.usage import DiskUsage, PodDiskUsage
from podstatus.runtime.process.records.layout import PodFolder
from podstatus.runtime.process.usage.disk_usage import (
    Attempts,
    ContainerAttemptFolder,
    DiskUsageCache,
    PodMeter,
)
from podstatus.testing.clock import FakeClock
from tests.runtime.process.usage.filled_files import KI, fill

A, B = PodUID("uid-a"), PodUID("uid-b")


class Disk:
    """Pods that are measured when the test allows it; each takes `seconds`."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.seconds = 0.0
        self.requested: list[str] = []
        self.answer = threading.Event()
        self._scans = queue.Queue[threading.Thread]()
        self.cache = DiskUsageCache(self._measure, clock=self.clock)

    def pass_time(self, seconds: float) -> None:
        asyncio.run(self.clock.advance(seconds))

    def _measure(self, uid: PodUID, attempts: Attempts) -> PodDiskUsage:
        self._scans.put(threading.current_thread())
        self.requested.append(uid)
        assert self.answer.wait(90)
        self.pass_time(self.seconds)
        total = DiskUsage(bytes=1000 * len(self.requested))
        return PodDiskUsage(at=self.clock.now(), total=total)

    def usage(self, *uids: PodUID) -> dict[PodUID, int]:
        usage = self.cache.usage(dict.fromkeys(uids, ()))
        return {uid: usage.total.bytes for uid, usage in usage.items()}

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
        assert disk.usage(A) == {}
        disk.pass_time(1000)
    assert threading.active_count() < 20
    disk.finish()
    assert disk.requested == ["uid-a"]
    assert disk.usage(A) == {A: 1000}


@pytest.mark.parametrize(
    ("seconds", "max_age"), [(0.001, 10), (0.1, 20), (1.0, 60)], ids=["small", "medium", "large"]
)
def test_a_large_pod_is_measured_less_often(disk: Disk, seconds: float, max_age: int) -> None:
    disk.seconds = seconds
    disk.usage(A)
    disk.finish()
    disk.pass_time(max_age - 1)
    assert disk.usage(A) == {A: 1000}
    assert disk.requested == ["uid-a"]
    disk.pass_time(1)
    assert disk.usage(A) == {A: 1000}
    disk.finish()
    assert disk.usage(A) == {A: 2000}


def test_new_pods_are_measured_and_removed_ones_dropped(disk: Disk) -> None:
    disk.usage(A)
    disk.finish()
    assert disk.usage(B) == {}
    disk.finish()
    assert disk.usage(B) == {B: 2000}
    assert disk.usage(A) == {}
    disk.finish()


async def test_a_refresh_measures_all_pods_again_and_waits(disk: Disk) -> None:
    def measure(uid: PodUID, _: Attempts) -> PodDiskUsage:
        disk.requested.append(uid)
        return PodDiskUsage(at=1, total=DiskUsage(bytes=len(disk.requested)))

    cache = DiskUsageCache(measure, clock=SystemClock())
    for expected in ({A: 1, B: 2}, {A: 3, B: 4}):
        await cache.refresh({A: (), B: ()})
        usage = cache.usage({A: (), B: ()})
        assert {uid: it.total.bytes for uid, it in usage.items()} == expected


async def test_a_refresh_gives_up_if_the_disk_hangs(disk: Disk) -> None:
    waiting = asyncio.create_task(disk.cache.refresh({A: ()}))
    await disk.clock.advance(29)
    assert not waiting.done()
    await disk.clock.advance(2)
    await waiting
    disk.finish()


def _meter(root: Path, outside: dict[str, Path] | None = None) -> PodMeter:
    return PodMeter(root, lambda _: outside or {}, now=lambda: 7)


def test_logs_of_all_attempts_and_files_of_the_newest_belong_to_a_container(
    tmp_path: Path,
) -> None:
    pod = PodFolder(tmp_path, A)
    for id, size in (("old", 512), ("new", 128)):
        fill(pod.container(id).log, 64 * KI)
        fill(pod.container(id).path / "0.log.20261118", 64 * KI)
        fill(pod.container(id).tmp / "file", size * KI)
    fill(pod.container("other").log, 32 * KI)
    attempts = (
        ContainerAttemptFolder("app", "new"),
        ContainerAttemptFolder("side", "other"),
        ContainerAttemptFolder("app", "old"),
    )
    usage = _meter(tmp_path).measure(A, attempts)
    app, side = usage.containers["app"], usage.containers["side"]
    assert usage.at == 7
    assert (app.logs.inodes, side.logs.inodes) == (4, 1)
    assert 256 * KI <= app.logs.bytes < 300 * KI
    assert app.rootfs.inodes == 3
    assert 128 * KI <= app.rootfs.bytes < 200 * KI
    assert usage.total.bytes >= (256 + 640 + 32) * KI


def test_volumes_are_measured_by_name_and_count_in_the_total(tmp_path: Path) -> None:
    pod = PodFolder(tmp_path / "root", A)
    fill(pod.volumes / "data/file", 128 * KI)
    (pod.volumes / "link").symlink_to(fill(tmp_path / "host/big", 1024 * KI).parent)
    fill(tmp_path / "outside/file", 256 * KI)
    usage = _meter(tmp_path / "root", {"scratch": tmp_path / "outside"}).measure(A, ())
    assert usage.volumes["link"] == DiskUsage()
    assert {name: part.inodes for name, part in usage.volumes.items()} == {
        "data": 2,
        "link": 0,
        "scratch": 2,
    }
    assert 256 * KI <= usage.volumes["scratch"].bytes < 300 * KI
    assert (128 + 256) * KI <= usage.total.bytes < 500 * KI


def test_a_pod_without_a_folder_uses_nothing(tmp_path: Path) -> None:
    attempts = (ContainerAttemptFolder("app", "id"),)
    usage = _meter(tmp_path).measure(A, attempts)
    assert usage.total == DiskUsage()
    assert usage.containers["app"].logs == DiskUsage()
