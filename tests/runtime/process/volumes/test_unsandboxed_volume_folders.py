"""Which folders below /tmp are the volumes of a pod."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.process.volumes.unsandboxed_files import OWNER_MARK, UnsandboxedFiles

UID, OTHER = PodUID("uid-a"), PodUID("uid-b")


@pytest.fixture
def shared() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


def test_volumes_are_listed_by_name_until_they_are_removed(tmp_path: Path, shared: Path) -> None:
    files = UnsandboxedFiles(tmp_path)
    files.create_folder(UID, str(shared / "data"), "scratch")
    assert files.volume_folders(UID) == {"scratch": shared / "data"}
    assert files.volume_folders(OTHER) == {}
    files.remove(UID)
    assert files.volume_folders(UID) == {}


def test_a_folder_without_the_mark_of_the_pod_is_not_its_volume(
    tmp_path: Path, shared: Path
) -> None:
    files = UnsandboxedFiles(tmp_path)
    files.create_folder(UID, str(shared / "data"), "scratch")
    (shared / "data" / OWNER_MARK).write_text(OTHER)
    assert files.volume_folders(UID) == {}
