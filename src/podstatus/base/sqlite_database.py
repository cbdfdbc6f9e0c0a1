"""Opens SQLite database files: private to their owner, in WAL mode, of one format version.

    database = open_database(path, DatabaseFormat(version=1, tables="CREATE TABLE IF NOT EXISTS …"))

`synchronous=NORMAL`: a killed process loses nothing that was written, a power cut at most the last
transactions, and neither damages the file.

    DatabaseFormatError   the file has another format version than this program writes
"""

import sqlite3
import stat
from pathlib import Path

import msgspec

_CORRUPTION_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
"""Primary result codes of a damaged file, or of one without its tables."""


class DatabaseFormatError(Exception):
    """The file has an unsupported format version."""

    def __init__(self, version: int) -> None:
        super().__init__(f"format version {version} is not supported")
        self.version = version


class DatabaseFormat(msgspec.Struct, frozen=True, kw_only=True):
    """How a database file is created and opened."""

    version: int
    """Stored as `user_version`, from 1 on."""
    tables: str = ""
    """Statements that create missing tables. If empty, the caller creates them and sets
    `user_version`."""
    locking_mode: str = "NORMAL"
    journal_bytes: int = -1
    """Size to which the journal is truncated after a checkpoint; -1 for no limit."""
    incremental_vacuum: bool = False
    """Whether free pages can be released one by one; fixed when the file is created."""


def open_database(path: Path, format: DatabaseFormat) -> sqlite3.Connection:
    """Open a database file with mode 0600; create it if it does not exist.

    In autocommit mode, for any thread, one at a time. A file that has its tables is not written, so
    that it opens on a full disk. Raises DatabaseFormatError, OSError, sqlite3.Error.
    """
    if path.exists() and not path.is_file():
        raise OSError("not a regular file")  # opening a pipe would block
    # Before SQLite creates its journal, which inherits the permissions of the database.
    path.touch(mode=0o600)
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        path.chmod(0o600)  # only if needed: some file systems refuse it
    database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        _prepare(database, format)
    except BaseException:
        database.close()
        raise
    return database


def remove_database(path: Path) -> None:
    """Delete the file and its journal, if they exist. Raises OSError."""
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def is_corruption(error: sqlite3.Error) -> bool:
    """Return whether the file is damaged or has lost its tables."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _CORRUPTION_CODES


def _prepare(database: sqlite3.Connection, format: DatabaseFormat) -> None:
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version not in (0, format.version):
        raise DatabaseFormatError(version)
    if not version and format.incremental_vacuum:
        # Before there are tables: afterwards it would require rewriting the whole file.
        database.execute("PRAGMA auto_vacuum = INCREMENTAL")
    database.execute(f"PRAGMA locking_mode = {format.locking_mode}")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute(f"PRAGMA journal_size_limit = {format.journal_bytes}")
    database.execute("PRAGMA synchronous = NORMAL")
    if format.tables:
        database.executescript(format.tables)
        if not version:
            database.execute(f"PRAGMA user_version = {format.version}")
