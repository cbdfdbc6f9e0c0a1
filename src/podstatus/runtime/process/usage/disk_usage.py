"""Disk usage of folders, measured without blocking the caller.

Folders are under the control of containers: links are not followed, other filesystems are not
entered, and a folder with too many entries is not measured.
"""

import os
import stat
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from podstatus.base.clock import Clock
from podstatus.kube.objects.pod import PodUID

MAX_ENTRIES = 200_000
"""About a second of work."""
MAX_DEPTH = 100
"""Each level keeps a descriptor open."""
_MAX_AGE_NS = 60 * 10**9
_BLOCK_BYTES = 512
"""Unit of `st_blocks`, whatever the filesystem's block size."""
_OPEN_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class DiskUsageCache:
    """Sizes of pod folders, at most a minute old if the disk keeps up.

    A daemon thread measures one folder at a time: a hanging disk blocks neither the event loop nor
    the exit of the process. Until it has measured a folder, its size is unknown.
    """

    def __init__(
        self,
        folder_of: Callable[[PodUID], Path],
        *,
        clock: Clock,
        size_of: Callable[[Path], int | None],
    ) -> None:
        self._folder_of = folder_of
        self._clock = clock
        self._size_of = size_of
        self._sizes: dict[PodUID, tuple[int, int | None]] = {}
        self._scan: _Scan | None = None

    def sizes(self, uids: Mapping[PodUID, object]) -> dict[PodUID, int | None]:
        """Return the known sizes, and measure stale ones again; other pods are dropped."""
        self._collect()
        self._sizes = {uid: entry for uid, entry in self._sizes.items() if uid in uids}
        oldest = self._clock.monotonic() - _MAX_AGE_NS
        stale = [uid for uid in uids if uid not in self._sizes or self._sizes[uid][0] < oldest]
        if stale and self._scan is None:
            self._scan = _Scan({uid: self._folder_of(uid) for uid in stale}, self._size_of)
        return {uid: self._sizes[uid][1] if uid in self._sizes else None for uid in uids}

    def _collect(self) -> None:
        if self._scan is not None and self._scan.done.is_set():
            now = self._clock.monotonic()
            self._sizes |= {uid: (now, size) for uid, size in self._scan.sizes.items()}
            self._scan = None


class _Scan:
    """One pass over some folders; `sizes` may be read once `done` is set."""

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
    """Return the bytes on disk of a folder's contents; None if it is too large, or gone."""
    try:
        descriptor = os.open(folder, _OPEN_FLAGS)
    except OSError:
        return None
    counter = _SizeCounter(os.fstat(descriptor).st_dev, max_entries, max_depth)
    try:
        counter.add_folder(descriptor, 0)
    except (_LimitExceededError, OSError):
        return None
    return counter.bytes


class _LimitExceededError(Exception):
    pass


class _SizeCounter:
    """Sums up a folder tree through descriptors, so that a swapped-in link has no effect."""

    def __init__(self, device: int, max_entries: int, max_depth: int) -> None:
        self.bytes = 0
        self._device = device
        self._remaining_entries = max_entries
        self._max_depth = max_depth
        self._hard_links: set[int] = set()

    def add_folder(self, fd: int, depth: int) -> None:
        """Add all contents of an open folder; closes it."""
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
            status = os.stat(name, dir_fd=parent, follow_symlinks=False)
            if not stat.S_ISDIR(status.st_mode):
                self._add(status)
                return
            if status.st_dev != self._device:
                return
            descriptor = os.open(name, _OPEN_FLAGS, dir_fd=parent)
        except OSError:
            return  # it is gone, or may not be read
        self.add_folder(descriptor, depth + 1)

    def _add(self, info: os.stat_result) -> None:
        if info.st_dev != self._device or info.st_ino in self._hard_links:
            return
        if info.st_nlink > 1 and not stat.S_ISDIR(info.st_mode):
            self._hard_links.add(info.st_ino)
        self.bytes += info.st_blocks * _BLOCK_BYTES
