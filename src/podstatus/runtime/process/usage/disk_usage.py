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

MOST_ENTRIES = 200_000
"""About a second of work."""
MOST_DEPTH = 100
"""Each level keeps a folder open."""
_FRESH_SECONDS = 60.0
_BLOCK = 512
"""What `st_blocks` counts, whatever the file system's blocks are."""
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class FolderSizes:
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
        self._size_of = size_of or size_of_folder
        self._known: dict[PodUID, tuple[float, int | None]] = {}
        self._round: _Round | None = None

    def sizes(self, uids: Mapping[PodUID, object]) -> dict[PodUID, int | None]:
        """What is known of these; what is old is counted anew. All others are forgotten."""
        self._take_over()
        self._known = {uid: known for uid, known in self._known.items() if uid in uids}
        old = self._monotonic() - _FRESH_SECONDS
        stale = [uid for uid in uids if uid not in self._known or self._known[uid][0] < old]
        if stale and self._round is None:
            self._round = _Round({uid: self._folder_of(uid) for uid in stale}, self._size_of)
        return {uid: self._known[uid][1] if uid in self._known else None for uid in uids}

    def _take_over(self) -> None:
        if self._round is not None and self._round.done.is_set():
            now = self._monotonic()
            self._known |= {uid: (now, size) for uid, size in self._round.found.items()}
            self._round = None


class _Round:
    """One look at some folders. What it found may be read when it is done."""

    def __init__(
        self, folders: Mapping[PodUID, Path], size_of: Callable[[Path], int | None]
    ) -> None:
        self.found: dict[PodUID, int | None] = {}
        self.done = threading.Event()
        self._folders = folders
        self._size_of = size_of
        threading.Thread(target=self._count, name="podstatus-folders", daemon=True).start()

    def _count(self) -> None:
        try:
            for uid, folder in self._folders.items():
                self.found[uid] = self._size_of(folder)
        finally:
            self.done.set()


def size_of_folder(
    folder: Path, *, most_entries: int = MOST_ENTRIES, most_depth: int = MOST_DEPTH
) -> int | None:
    """Bytes on the disk of all that is in a folder; None if that is too much to count, or gone."""
    try:
        opened = os.open(folder, _OPEN)
    except OSError:
        return None
    count = _Count(os.fstat(opened).st_dev, most_entries, most_depth)
    try:
        count.add_folder(opened, 0)
    except (_TooMuchError, OSError):
        return None
    return count.bytes


class _TooMuchError(Exception):
    pass


class _Count:
    """Counts what is in a folder. Who swaps a folder for a link meanwhile leads nowhere."""

    def __init__(self, device: int, most_entries: int, most_depth: int) -> None:
        self.bytes = 0
        self._device = device
        self._left = most_entries
        self._most_depth = most_depth
        self._linked: set[int] = set()

    def add_folder(self, opened: int, depth: int) -> None:
        """All in a folder that is open; it is closed in the end."""
        try:
            if depth > self._most_depth:
                raise _TooMuchError
            self._add(os.fstat(opened))
            with os.scandir(opened) as entries:
                for entry in entries:
                    self._add_entry(opened, entry.name, depth)
        finally:
            os.close(opened)

    def _add_entry(self, parent: int, name: str, depth: int) -> None:
        self._left -= 1
        if self._left < 0:
            raise _TooMuchError
        try:
            found = os.stat(name, dir_fd=parent, follow_symlinks=False)
            if not stat.S_ISDIR(found.st_mode):
                self._add(found)
                return
            if found.st_dev != self._device:
                return
            opened = os.open(name, _OPEN, dir_fd=parent)
        except OSError:
            return  # it is gone, or not ours to look at
        self.add_folder(opened, depth + 1)

    def _add(self, found: os.stat_result) -> None:
        if found.st_dev != self._device or found.st_ino in self._linked:
            return
        if found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode):
            self._linked.add(found.st_ino)
        self.bytes += found.st_blocks * _BLOCK
