"""Disk usage of a tree of files.

Trees are under the control of containers: links are not followed, other filesystems are not
entered, and the work is limited. What exceeds a limit makes the result incomplete: a lower bound.
"""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from podstatus.kube.objects.usage import DiskUsage

MAX_ENTRIES = 200_000
"""Of one tree; about a second of work."""
MAX_DEPTH = 100
"""Each level keeps a descriptor open."""
OPEN_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_BLOCK_BYTES = 512
"""Unit of `st_blocks`, whatever the filesystem's block size."""


PartOf = Callable[[str], str | None]
"""Returns the part of a folder that an entry belongs to; None: it is not counted."""


def split_tree_usage(
    folder: Path,
    part_of: PartOf,
    *,
    max_entries: int = MAX_ENTRIES,
    max_depth: int = MAX_DEPTH,
) -> dict[str, DiskUsage] | None:
    """Return the usage of a folder by part; None if it is gone or cannot be opened.

    The folder itself belongs to the part of the empty name, which must not be None.
    """
    try:
        descriptor = os.open(folder, OPEN_FLAGS)
    except OSError:
        return None
    counter = _UsageCounter(os.fstat(descriptor).st_dev, max_entries, max_depth)
    counter.add_parts(descriptor, part_of)
    return counter.parts()


class _LimitExceededError(Exception):
    pass


class _UsageCounter:
    """Sums up a tree through descriptors, so that a swapped-in link has no effect."""

    def __init__(self, device: int, max_entries: int, max_depth: int) -> None:
        self._device = device
        self._remaining_entries = max_entries
        self._max_depth = max_depth
        self._hard_links: set[int] = set()
        self._sums: dict[str, list[int]] = {}
        self._part: list[int] = []
        """Bytes and inodes of the current part."""
        self._is_complete = True

    def parts(self) -> dict[str, DiskUsage]:
        return {
            part: DiskUsage(bytes=size, inodes=inodes, is_complete=self._is_complete)
            for part, (size, inodes) in self._sums.items()
        }

    def add_parts(self, fd: int, part_of: PartOf) -> None:
        """Add an open folder and its contents; closes it."""
        try:
            self._select(part_of(""))
            self._add(os.fstat(fd))
            with os.scandir(fd) as entries:
                for entry in entries:
                    if self._select(part_of(entry.name)):
                        self._add_entry(fd, entry.name, 0)
        except (_LimitExceededError, OSError):
            self._is_complete = False
        finally:
            os.close(fd)

    def _select(self, part: str | None) -> bool:
        if part is not None:
            self._part = self._sums.setdefault(part, [0, 0])
        return part is not None

    def _add_folder(self, fd: int, depth: int) -> None:
        """Add an open folder and its contents; closes it."""
        try:
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
            elif status.st_dev != self._device:
                return
            elif depth == self._max_depth:
                self._is_complete = False
            else:
                self._add_folder(os.open(name, OPEN_FLAGS, dir_fd=parent), depth + 1)
        except FileNotFoundError:
            return  # removed meanwhile
        except OSError:
            self._is_complete = False

    def _add(self, info: os.stat_result) -> None:
        if info.st_dev != self._device or info.st_ino in self._hard_links:
            return
        if info.st_nlink > 1 and not stat.S_ISDIR(info.st_mode):
            self._hard_links.add(info.st_ino)
        self._part[0] += info.st_blocks * _BLOCK_BYTES
        self._part[1] += 1
