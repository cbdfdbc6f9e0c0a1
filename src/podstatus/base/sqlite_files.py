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

Stamp = tuple[int, int, int, int] | None
"""Device, inode, size, time of the last write; None: there is no such file."""


class SqliteFiles:
    """A database and its journal, as they were after the last write. For one thread at a time."""

    def __init__(self, path: Path) -> None:
        """As they are now."""
        self._names = str(path), f"{path}-wal"
        self._stamps = self._look()

    def remember(self) -> None:
        """We have written: they are right as they are now."""
        self._stamps = self._look()

    def are_changed(self) -> bool:
        """Whether another program has changed them since."""
        return self._look() != self._stamps

    def what_happened(self) -> str:
        """What was done to the database, for a message."""
        before, now = self._stamps[0], _stamp(self._names[0])
        if now is None:
            return "was deleted"
        if before is None or before[:2] != now[:2]:
            return "was replaced"
        return "was truncated" if now[2] < before[2] else "was changed by another program"

    def _look(self) -> tuple[Stamp, Stamp]:
        database, journal = self._names
        return _stamp(database), _stamp(journal)


def _stamp(path: str) -> Stamp:
    try:
        found = os.stat(path)  # noqa: PTH116 - several times with every write
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
