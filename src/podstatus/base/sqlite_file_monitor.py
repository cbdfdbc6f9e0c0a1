"""Detects that another program deleted, truncated or overwrote the files of a SQLite database.

    monitor = SqliteFileMonitor(path)
    database.execute("INSERT …")
    monitor.record_write()
    ...
    if monitor.is_changed(): ...

SQLite itself keeps writing to a deleted file and reading from its cache. The database must have a
single writer, which calls `record_write` after each write.
"""

import os
from pathlib import Path

FileStamp = tuple[int, int, int, int] | None
"""Device, inode, size and modification time; None if the file does not exist."""


class SqliteFileMonitor:
    """The state of a database file and its journal after the last write. Not thread-safe."""

    def __init__(self, path: Path) -> None:
        """Record the current state of the files."""
        self._paths = str(path), f"{path}-wal"
        self._stamps = self._read_stamps()

    def record_write(self) -> None:
        """Record the state of the files after a write of our own."""
        self._stamps = self._read_stamps()

    def is_changed(self) -> bool:
        """Return whether another program has changed the files since the last write."""
        return self._read_stamps() != self._stamps

    def describe_change(self) -> str:
        """Return what happened to the database file, as part of a message."""
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
        stat = os.stat(path)  # noqa: PTH116 - several times with every write
    except OSError:
        return None
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns
