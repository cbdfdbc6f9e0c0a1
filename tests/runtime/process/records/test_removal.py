"""Files of containers are removed, whatever they did to their folders."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.process.paths.safe_paths import remove_tree
from podstatus.runtime.process.records.models import PodRecord
from podstatus.runtime.process.records.store import RecordStore
from tests.support.processes.process_runtime import NOBODY

UID = PodUID("uid-1")
DEEP = 1050
"""Deeper than Python's recursion limit and, with long names, than PATH_MAX."""
RECORD = PodRecord(
    uid=UID, namespace="default", name="web", sandbox_id="1", sandbox_attempt=0, created_at=1
)


def dig(folder: Path, depth: int) -> None:
    """Create nested folders, as a hostile container does."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("deeper", dir_fd=here)
        below = os.open("deeper", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RecordStore]:
    yield RecordStore(tmp_path)
    subprocess.run(["/bin/rm", "-rf", str(tmp_path)], check=True)


def test_folders_without_end_are_removed(store: RecordStore, tmp_path: Path) -> None:
    store.write_pod(RECORD)
    dig(store.pod_folder(UID).volumes, DEEP)
    store.remove(store.pod_folder(UID).path)
    assert list((tmp_path / "removed").iterdir()) == []
    assert list((tmp_path / "pods").iterdir()) == []


def test_a_removal_that_was_begun_is_finished(store: RecordStore, tmp_path: Path) -> None:
    begun = tmp_path / "removed" / "1"
    begun.mkdir()
    dig(begun, DEEP)
    store.collect_garbage()
    assert list((tmp_path / "removed").iterdir()) == []


def test_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "file").write_text("kept")
    tree = tmp_path / "tree"
    (tree / "below").mkdir(parents=True)
    for place in (tree, tree / "below"):
        (place / "folder").symlink_to(tmp_path / "others")
        (place / "file").symlink_to(tmp_path / "others" / "file")
        (place / "nowhere").symlink_to("/no/such/file")
    (tmp_path / "link").symlink_to(tmp_path / "others")
    remove_tree(tree)
    remove_tree(tmp_path / "link")
    assert [path.name for path in tmp_path.iterdir()] == ["others"]
    assert (tmp_path / "others" / "file").read_text() == "kept"


LOADED = "import os;from pathlib import *;from podstatus.runtime.process.records.store import *"
LOCKED = """
store, tree = RecordStore(Path({place!r})), Path({place!r}, "tree")
folders = [tree, tree / "a", tree / "a" / "b", tree / "a" / "b" / "c", tree / "read-only"]
for folder in folders:
    folder.mkdir()
    (folder / "file").touch()
for folder in reversed(folders[1:]):
    folder.chmod(0o500 if folder.name == "read-only" else 0)
store.remove(tree)
assert not list(Path({place!r}, "removed").iterdir())
"""


def test_folders_that_were_locked_are_removed_by_an_ordinary_user() -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        if os.geteuid() == 0:
            os.chown(place, NOBODY, NOBODY)
        code = LOCKED.format(place=place)
        # Import as the current user, who may read the code, then switch to an ordinary user.
        become = f"os.geteuid() or (os.setgroups([]), os.setgid({NOBODY}), os.setuid({NOBODY}))"
        subprocess.run([sys.executable, "-c", f"{LOADED}; {become}; exec({code!r})"], check=True)
