"""How much of the disk folders take, without ever letting anybody wait for it.

What containers leave in their folder is theirs: links are not followed, other file systems are
not entered, and who has more files than can be counted is not counted.
"""

import os
import stat
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from podstatus.kube.objects.pod import PodUID

MAX_ENTRIES = 200_000
"""About a second of work."""
MAX_DEPTH = 100
"""Each level keeps a folder open."""
_MAX_AGE_SECONDS = 60.0
_BLOCK_BYTES = 512
"""What `st_blocks` counts, whatever the file system's blocks are."""
_OPEN_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class DiskUsageCache:
    """Sizes of the folders of pods, each at most a minute old if the disk keeps up.

    A daemon thread counts, one at a time: a disk that hangs keeps neither the loop nor the end of
    the process waiting. Until it has counted, nothing is known.
    """

    def __init__(
        self,
        folder_of: Callable[[PodUID], Path],
        *,
        monotonic: Callable[[], float] = time.monotonic,
        size_of: "Callable[[Path], int | None] | None" = None,
    ) -> None:
        self._folder_of = folder_of
        self._monotonic = monotonic
        self._size_of = size_of or folder_size
        self._sizes: dict[PodUID, tuple[float, int | None]] = {}
        self._scan: _Scan | None = None

    def sizes(self, uids: Mapping[PodUID, object]) -> dict[PodUID, int | None]:
        """What is known of these; what is old is counted anew. All others are forgotten."""
        self._collect()
        self._sizes = {uid: known for uid, known in self._sizes.items() if uid in uids}
        old = self._monotonic() - _MAX_AGE_SECONDS
        stale = [uid for uid in uids if uid not in self._sizes or self._sizes[uid][0] < old]
        if stale and self._scan is None:
            self._scan = _Scan({uid: self._folder_of(uid) for uid in stale}, self._size_of)
        return {uid: self._sizes[uid][1] if uid in self._sizes else None for uid in uids}

    def _collect(self) -> None:
        if self._scan is not None and self._scan.done.is_set():
            now = self._monotonic()
            self._sizes |= {uid: (now, size) for uid, size in self._scan.sizes.items()}
            self._scan = None


class _Scan:
    """One look at some folders. What it found may be read when it is done."""

    def __init__(
        self, folders: Mapping[PodUID, Path], size_of: Callable[[Path], int | None]
    ) -> None:
        self.sizes: dict[PodUID, int | None] = {}
        self.done = threading.Event()
        self._folders = folders
        self._size_of = size_of
        threading.Thread(target=self._run, name="podstatus-folders", daemon=True).start()

    def _run(self) -> None:
        try:
            for uid, folder in self._folders.items():
                self.sizes[uid] = self._size_of(folder)
        finally:
            self.done.set()


def folder_size(
    folder: Path, *, max_entries: int = MAX_ENTRIES, max_depth: int = MAX_DEPTH
) -> int | None:
    """Bytes on the disk of all that is in a folder; None if that is too much to count, or gone."""
    try:
        opened = os.open(folder, _OPEN_FLAGS)
    except OSError:
        return None
    count = _SizeCounter(os.fstat(opened).st_dev, max_entries, max_depth)
    try:
        count.add_folder(opened, 0)
    except (_LimitExceededError, OSError):
        return None
    return count.bytes


class _LimitExceededError(Exception):
    pass


class _SizeCounter:
    """Counts what is in a folder. Who swaps a folder for a link meanwhile leads nowhere."""

    def __init__(self, device: int, max_entries: int, max_depth: int) -> None:
        self.bytes = 0
        self._device = device
        self._remaining_entries = max_entries
        self._max_depth = max_depth
        self._hard_links: set[int] = set()

    def add_folder(self, fd: int, depth: int) -> None:
        """All in a folder that is open; it is closed in the end."""
        try:
            if depth > self._max_depth:
                raise _LimitExceededError
            self._add(os.fstat(fd))
            with os.scandir(fd) as entries:
                for entry in entries:
                    self._add_entry(fd, entry.name, depth)
        finally:
            os.close(fd)

    def _add_entry(self, parent: int, name: str, depth: int) -> None:
        self._remaining_entries -= 1
        if self._remaining_entries < 0:
            raise _LimitExceededError
        try:
            found = os.stat(name, dir_fd=parent, follow_symlinks=False)
            if not stat.S_ISDIR(found.st_mode):
                self._add(found)
                return
            if found.st_dev != self._device:
                return
            opened = os.open(name, _OPEN_FLAGS, dir_fd=parent)
        except OSError:
            return  # it is gone, or not ours to look at
        self.add_folder(opened, depth + 1)

    def _add(self, info: os.stat_result) -> None:
        if info.st_dev != self._device or info.st_ino in self._hard_links:
            return
        if info.st_nlink > 1 and not stat.S_ISDIR(info.st_mode):
            self._hard_links.add(info.st_ino)
        self.bytes += info.st_blocks * _BLOCK_BYTES
