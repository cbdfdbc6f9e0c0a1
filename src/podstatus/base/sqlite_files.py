"""Notices that other programs delete, truncate or overwrite the files of a SQLite database.

    files = SqliteFiles(path)
    database.execute("INSERT …")
    files.remember()
    ...
    if files.are_changed(): ...

SQLite writes on into a deleted file and reads on from its cache. For a database with one writer,
which calls `remember` after each write.
"""

import os
from pathlib import Path

FileStamp = tuple[int, int, int, int] | None
"""Device, inode, size, time of the last write; None: there is no such file."""


class SqliteFileMonitor:
    """A database and its journal, as they were after the last write. For one thread at a time."""

    def __init__(self, path: Path) -> None:
        """As they are now."""
        self._paths = str(path), f"{path}-wal"
        self._stamps = self._read_stamps()

    def record_write(self) -> None:
        """We have written: they are right as they are now."""
        self._stamps = self._read_stamps()

    def is_changed(self) -> bool:
        """Whether another program has changed them since."""
        return self._read_stamps() != self._stamps

    def describe_change(self) -> str:
        """What was done to the database, for a message."""
        before, now = self._stamps[0], _stamp(self._paths[0])
        if now is None:
            return "was deleted"
        if before is None or before[:2] != now[:2]:
            return "was replaced"
        return "was truncated" if now[2] < before[2] else "was changed by another program"

    def _read_stamps(self) -> tuple[FileStamp, FileStamp]:
        database, journal = self._paths
        return _stamp(database), _stamp(journal)


def _stamp(path: str) -> FileStamp:
    try:
        found = os.stat(path)  # noqa: PTH116 - several times with every write
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
