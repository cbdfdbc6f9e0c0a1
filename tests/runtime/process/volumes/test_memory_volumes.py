"""EmptyDirs with medium Memory are tmpfs mounts, which end with the pod."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.port import CannotStartError
from podstatus.runtime.process.paths.mount_table import MountEntry
from podstatus.runtime.process.paths.safe_paths import remove_tree
from podstatus.runtime.process.records.layout import PodFolder
from podstatus.runtime.process.usage.disk_usage import PodMeter
from podstatus.runtime.process.volumes.host_paths import read_mount_table
from podstatus.runtime.process.volumes.memory_volumes import MemoryVolumes, is_mount_point

UID = PodUID("uid-1")
KI = 1024
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A folder of the runtime, whose mounts are removed afterwards."""
    yield tmp_path
    MemoryVolumes(tmp_path).remove(UID)


def mount_at(folder: Path) -> MountEntry:
    mount = read_mount_table().find_mount(str(folder))
    assert mount is not None
    return mount


@only_root
def test_a_volume_is_a_tmpfs_that_all_can_write_to(root: Path) -> None:
    MemoryVolumes(root).create(UID, "cache", None)
    folder = PodFolder(root, UID).volumes / "cache"
    assert (mount_at(folder).mount_point, mount_at(folder).fs_type) == (str(folder), "tmpfs")
    assert folder.stat().st_mode & 0o7777 == 0o777


@only_root
def test_a_volume_is_mounted_once(root: Path) -> None:
    folder = PodFolder(root, UID).volumes / "cache"
    for _ in range(2):
        MemoryVolumes(root).create(UID, "cache", None)
        (folder / "kept").touch()
    MemoryVolumes(root).remove(UID)
    assert not is_mount_point(folder)


@only_root
def test_a_size_limit_is_the_size_of_the_filesystem(root: Path) -> None:
    MemoryVolumes(root).create(UID, "cache", 64 * KI)
    status = os.statvfs(PodFolder(root, UID).volumes / "cache")
    assert status.f_blocks * status.f_frsize == 64 * KI


@only_root
def test_a_removed_volume_leaves_no_files_and_no_mount(root: Path) -> None:
    MemoryVolumes(root).create(UID, "cache", None)
    pod = PodFolder(root, UID)
    (pod.volumes / "cache" / "deep").mkdir()
    (pod.volumes / "cache" / "deep" / "file").touch()
    with (pod.volumes / "cache" / "open").open("wb") as file:
        MemoryVolumes(root).remove(UID)
        assert os.fstat(file.fileno()).st_nlink == 0
    assert list((pod.volumes / "cache").iterdir()) == []
    remove_tree(pod.path)
    assert not pod.path.exists()


def test_other_folders_and_links_are_left_alone(tmp_path: Path) -> None:
    volumes = PodFolder(tmp_path, UID).volumes
    volumes.mkdir(parents=True)
    (volumes / "link").symlink_to("/proc")
    (volumes / "disk").mkdir()
    (volumes / "disk" / "file").touch()
    MemoryVolumes(tmp_path).remove(UID)
    assert (volumes / "disk" / "file").exists()
    assert (volumes / "link").is_symlink()


def test_a_pod_without_volumes_is_removed(tmp_path: Path) -> None:
    MemoryVolumes(tmp_path).remove(UID)


@pytest.mark.skipif(os.geteuid() == 0, reason="root can mount")
def test_without_root_the_remedy_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotStartError, match="run it as root, or remove the medium"):
        MemoryVolumes(tmp_path).create(UID, "cache", None)


@only_root
def test_memory_does_not_count_as_disk(root: Path) -> None:
    MemoryVolumes(root).create(UID, "cache", None)
    folder = PodFolder(root, UID).volumes / "cache"
    (folder / "file").write_bytes(b"x" * 256 * KI)
    usage = PodMeter(root, lambda _: {}, now=lambda: 7).measure(UID, ())
    assert usage.volumes["cache"].bytes >= 256 * KI
    assert usage.total.bytes < 256 * KI
