"""A file system that is small enough to be filled by a test."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest


def program(name: str) -> str:
    return shutil.which(name) or name


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "small"
    disk.mkdir()
    options = ["-t", "tmpfs", "-o", "size=16m", "podstatus-test", str(disk)]
    made = subprocess.run([program("mount"), *options], check=False, capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"a disk of its own takes root: {made.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run([program("umount"), "--lazy", str(disk)], check=True)


def fill(disk: Path) -> Path:
    """Leave no room; the file that takes it."""
    filler = disk / "filler"
    for size in (2**20, 4096, 1):
        with suppress(OSError), filler.open("ab", buffering=0) as writer:
            while writer.write(b"x" * size):
                pass
    return filler
