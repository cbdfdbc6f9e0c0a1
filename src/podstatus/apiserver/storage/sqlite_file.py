"""The database file: SQLite in WAL mode, for one server, with a marker beside it.

    objects.db            the objects, the version of the last deletion, the cluster ID
    objects.db-wal        SQLite's write-ahead log: changes not yet in the file
    objects.db-marker     what the file must hold (`podstatus.apiserver.storage.marker`)

Reads are served from memory, so they stay correct when another program deletes, truncates or
overwrites the files; writes to such files would be lost. `is_changed` detects that before the next
write, and `rebuild` writes everything to a new file.

    StorageError   (of `marker`) the files cannot be used
"""

import logging
import sqlite3
import stat
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from podstatus.apiserver.storage.marker import (
    VERSION_BUMP,
    DatabaseState,
    MarkerFile,
    StorageError,
    classify_database,
    marker_path,
    rejection_message,
)
from podstatus.base.sqlite_database import (
    DatabaseFormat,
    DatabaseFormatError,
    is_corruption,
    open_database,
    remove_database,
)
from podstatus.base.sqlite_file_monitor import SqliteFileMonitor

logger = logging.getLogger(__name__)

_TABLES = """
BEGIN;
CREATE TABLE IF NOT EXISTS objects (
    resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    version INTEGER NOT NULL, data BLOB NOT NULL,
    UNIQUE (resource, namespace, name)
);
CREATE TABLE IF NOT EXISTS last_deletion (
    one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS cluster (
    one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL
);
INSERT OR IGNORE INTO last_deletion VALUES (1, 0);
INSERT OR IGNORE INTO cluster VALUES (1, '{cluster}');
PRAGMA user_version = {format};
COMMIT;
"""
_SELECT_VERSION = """
SELECT max(coalesce((SELECT max(version) FROM objects), 0), version) FROM last_deletion
"""
_LAST_DELETION = "UPDATE last_deletion SET version = ?"
DATABASE = "objects.db"
"""The default file name of the database."""
_FORMAT = DatabaseFormat(version=1, locking_mode="EXCLUSIVE")

ObjectRow = tuple[str, str, str, int, bytes]
"""Resource, namespace, name, version, data."""
Statement = tuple[str, tuple[Any, ...]]


class ObjectDatabase:
    """The database and marker of one server. Not thread-safe."""

    def __init__(self, path: Path, marker: MarkerFile, database: sqlite3.Connection) -> None:
        self.path = path
        self.database = database
        self.cluster = _cluster(database)
        """The ID of the cluster that the objects belong to."""
        self.version = _version(database)
        """The newest resource version when the database was opened."""
        self._marker = marker
        self._files = SqliteFileMonitor(path)
        self._is_corrupt = False

    @classmethod
    def open(cls, path: Path, *, cluster: str = "") -> "ObjectDatabase":
        """Open the database; create a new cluster if there was none.

        `cluster` is the ID it must hold, if known. Raises StorageError.
        """
        try:
            return cls._open(path, cluster)
        except (OSError, sqlite3.Error) as error:
            raise StorageError(
                f"cannot use the database {path}: {error}; check that no other server uses the "
                "directory and that the disk is not full. If the file is damaged, restore it from "
                f"a backup, or move it away with {marker_path(path)} to start with an empty cluster"
            ) from error

    @classmethod
    def _open(cls, path: Path, expected: str) -> "ObjectDatabase":
        marker = MarkerFile(path)
        content, has_marker = marker.read()
        if _is_empty(path) and has_marker:
            # Do not open: SQLite would remove the write-ahead log, which may hold all that is left.
            raise StorageError(rejection_message(DatabaseState.EMPTY, path, 0, content))
        database = _connect(path)
        try:
            cluster, version = _cluster(database), _version(database)
            state = classify_database(
                cluster, version, content, has_marker=has_marker, boot=marker.boot
            )
            _raise_if(rejection_message(state, path, version, content))
            if expected and cluster != expected:
                _raise_if(_cluster_mismatch_message(path, expected))
            _create_tables(database, cluster or str(uuid.uuid4()))
            if state in (DatabaseState.BEHIND, DatabaseState.UNMARKED) and version:
                _bump_version(
                    database, path, max(version, content.version if content else 0) + VERSION_BUMP
                )
            opened = cls(path, marker, database)
            marker.write(opened.cluster, opened.version)
        except BaseException:
            database.close()
            raise
        return opened

    def rows(self) -> list[ObjectRow]:
        """Return all objects. Raises StorageError."""
        try:
            rows: list[ObjectRow] = self.database.execute(
                "SELECT resource, namespace, name, version, data FROM objects"
            ).fetchall()
        except sqlite3.Error as error:
            raise StorageError(damaged_message(self.path, str(error))) from error
        return rows

    def write(self, version: int, statements: Sequence[Statement]) -> None:
        """Execute all statements or none; `version` becomes the newest. Raises StorageError."""
        try:
            _execute(self.database, statements)
        except sqlite3.Error as error:
            if self.database.in_transaction:
                self.database.execute("ROLLBACK")
            self._files.record_write()
            self._is_corrupt = is_corruption(error)
            raise StorageError(
                f"cannot write to the database: {error}; nothing was changed: free disk space, "
                "then try again"
            ) from error
        self._files.record_write()
        self._marker.advance(version)

    def is_changed(self) -> bool:
        """Return whether another program has changed the files since the last write."""
        if self._is_corrupt or self._files.is_changed():
            return True
        return not self._marker.is_unchanged()

    def rebuild(self, rows: Iterable[ObjectRow], version: int) -> None:
        """Write exactly these objects to a new file. Raises StorageError."""
        logger.error("database was changed by another program, rewriting it: path=%s", self.path)
        temporary = self.path.with_name(f"{self.path.name}-rebuild")
        try:
            _write_database(temporary, self.cluster, rows, version)
            # Remove the log before the new file is in place: SQLite would replay it there.
            Path(f"{self.path}-wal").unlink(missing_ok=True)
            temporary.replace(self.path)
            with suppress(sqlite3.Error):
                self.database.close()
            self.database = _connect(self.path)
            self._files.record_write()
            self._is_corrupt = False
            self._marker.write(self.cluster, version)
        except (OSError, sqlite3.Error, StorageError) as error:
            raise StorageError(
                f"{self.path} was changed by another program and cannot be rewritten: {error}; "
                "nothing was changed: free disk space, or remove what is in its place"
            ) from error

    def close(self) -> None:
        self._marker.close()
        self.database.close()


def _is_empty(path: Path) -> bool:
    """Return whether the file is missing or empty. Raises OSError, StorageError."""
    try:
        stats = path.stat()
    except FileNotFoundError:
        return True
    if not stat.S_ISREG(stats.st_mode):
        raise StorageError(f"{path} is not a regular file; restore the database from a backup")
    return stats.st_size == 0


def _connect(path: Path) -> sqlite3.Connection:
    """Open the database without changing its content.

    Raises OSError, StorageError, sqlite3.Error.
    """
    try:
        return open_database(path, _FORMAT)
    except DatabaseFormatError as error:
        raise StorageError(
            f"the database {path} has format {error.version}, only {_FORMAT.version} is supported; "
            "use the podstatus version that wrote it, or another directory"
        ) from error


def _raise_if(message: str) -> None:
    """Raise StorageError unless the message is empty."""
    if message:
        raise StorageError(message)


def _create_tables(database: sqlite3.Connection, cluster: str) -> None:
    """Create the tables and sync them to disk, before the marker says that they exist."""
    if _cluster(database):
        return
    database.executescript(_TABLES.format(cluster=cluster, format=_FORMAT.version))
    database.execute("PRAGMA wal_checkpoint(FULL)")


def _bump_version(database: sqlite3.Connection, path: Path, version: int) -> None:
    logger.warning(
        "database may be an older copy, increased the resource version: path=%s version=%d",
        path,
        version,
    )
    database.execute(_LAST_DELETION, (version,))


def _value(database: sqlite3.Connection, table: str, query: str) -> Any:
    """Return the value of a query; None if the table or its row does not exist."""
    exists = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
    if database.execute(exists, (table,)).fetchone() is None:
        return None
    row = database.execute(query).fetchone()
    return row and row[0]


def _cluster(database: sqlite3.Connection) -> str:
    return str(_value(database, "cluster", "SELECT id FROM cluster") or "")


def _version(database: sqlite3.Connection) -> int:
    return int(_value(database, "last_deletion", _SELECT_VERSION) or 0)


def _write_database(path: Path, cluster: str, rows: Iterable[ObjectRow], version: int) -> None:
    """Write a new database file with these objects, synced.

    Raises OSError, sqlite3.Error.
    """
    remove_database(path)
    database = _connect(path)
    try:
        _create_tables(database, cluster)
        database.execute("BEGIN")
        database.executemany("INSERT INTO objects VALUES (?, ?, ?, ?, ?)", rows)
        database.execute(_LAST_DELETION, (version,))
        database.execute("COMMIT")
        database.execute("PRAGMA wal_checkpoint(FULL)")
    finally:
        database.close()


def _execute(database: sqlite3.Connection, statements: Sequence[Statement]) -> None:
    """Execute all statements or none; a single one is a transaction by itself."""
    if len(statements) > 1:
        database.execute("BEGIN")
    for statement, values in statements:
        database.execute(statement, values)
    if len(statements) > 1:
        database.execute("COMMIT")


def _cluster_mismatch_message(path: Path, expected: str) -> str:
    return (
        f"{path} does not hold cluster {expected}, whose pods run on this node: restore it from "
        "a backup, or restart the agent to use the present database"
    )


def damaged_message(path: Path, detail: str) -> str:
    """Return the error message for an unreadable file."""
    return (
        f"{path} is damaged: {detail}; restore it from a backup, or move it away with "
        f"{marker_path(path)} to start with an empty cluster"
    )
