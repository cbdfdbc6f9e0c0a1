"""SQLite file with active alerts and the progress of their deliveries.

    store = AlertStore.open(root_dir / "alerts.db")
    store.write({alert.id: StoredAlert(alert=alert)}, removed=[])
    store.read()

One row per alert. WAL and `synchronous=NORMAL`, as for the history: a killed process loses nothing
that was written. One thread at a time. The file holds webhook URLs, which may be secrets, so its
mode is 0600. `check`, which also precedes each write, detects that another program deleted or
damaged the file while it is in use, and replaces it by an empty one.

    AlertStoreError     the file cannot be used; the message says why and what to do
"""

import logging
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, get_args

import msgspec

from podstatus.alerts.delivery.decide.queue import DeliveryProgress, StoredAlert
from podstatus.alerts.model import AlertId
from podstatus.base.msgspec_json import convert_json, json_decoder
from podstatus.base.sqlite_file_monitor import SqliteFileMonitor

logger = logging.getLogger(__name__)

_TABLE = "CREATE TABLE IF NOT EXISTS alerts (id TEXT PRIMARY KEY, kept BLOB NOT NULL) WITHOUT ROWID"
_SCHEMA_VERSION = 1
"""Schema version, stored in `user_version`."""
_CORRUPTION_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
"""Primary result codes of a damaged file, or of one without its table."""
_BUSY_SECONDS = 5.0
_JOURNAL_BYTES = 2**20

_encoder = msgspec.json.Encoder()


class _OlderAlert(msgspec.Struct):
    alert: dict[str, Any]
    deliveries: dict[str, dict[str, Any]] = {}


class AlertStoreError(Exception):
    """The alert file cannot be used."""


class AlertStore:
    """The alert file. All methods raise AlertStoreError."""

    def __init__(self, database: sqlite3.Connection, path: Path) -> None:
        self._database = database
        self._path = path
        self._lock = threading.Lock()
        self._files = SqliteFileMonitor(path)
        self._is_corrupt = False

    @classmethod
    def open(cls, path: Path) -> "AlertStore":
        """Open the file; create it if it does not exist."""
        return cls(_open(path), path)

    def check(self) -> None:
        """Raises AlertStoreError if another program has changed the file since the last write.

        The file is then replaced by an empty one, and all alerts have to be written again.
        """
        with self._lock:
            if not self._is_corrupt and not self._files.is_changed():
                return
            change = self._files.describe_change()
            with suppress(sqlite3.Error):
                self._database.close()
            self._is_corrupt = True
            _remove(self._path)
            self._database = _open(self._path)
            self._is_corrupt = False
            self._files.record_write()
        raise AlertStoreError(f"{self._path} {change}; all alerts are written again")

    def close(self) -> None:
        """Close the file. Raises AlertStoreError while a thread is writing; process exit closes it
        then.
        """
        if not self._lock.acquire(blocking=False):
            # Closing it under that thread would crash SQLite.
            raise AlertStoreError(f"cannot close {self._path}: it is being written")
        try:
            with self._translate_errors("close"):
                self._database.close()
        finally:
            self._lock.release()

    def read(self) -> dict[AlertId, StoredAlert]:
        """Return all stored alerts. Entries that cannot be decoded are logged and skipped."""
        with self._operation("read"):
            rows = self._database.execute("SELECT id, kept FROM alerts ORDER BY id").fetchall()
        alerts = {}
        for id_, content in rows:
            try:
                alerts[AlertId(id_)] = _decode(content)
            except msgspec.DecodeError as error:
                logger.error("cannot decode stored alert, skipped it: id=%s error=%s", id_, error)
        return alerts

    def write(self, alerts: Mapping[AlertId, StoredAlert], removed: Iterable[AlertId]) -> None:
        """Store `alerts` and delete `removed`, in one transaction."""
        rows = [(id_, _encoder.encode(alert)) for id_, alert in alerts.items()]
        self.check()
        with self._operation("write to"), self._transaction():
            self._database.executemany(
                "DELETE FROM alerts WHERE id = ?", [(id_,) for id_ in removed]
            )
            self._database.executemany("INSERT OR REPLACE INTO alerts VALUES (?, ?)", rows)

    def replace(self, alerts: Mapping[AlertId, StoredAlert]) -> None:
        """Replace all stored alerts by these, in one transaction."""
        rows = [(id_, _encoder.encode(alert)) for id_, alert in alerts.items()]
        self.check()
        with self._operation("write to"), self._transaction():
            self._database.execute("DELETE FROM alerts")
            self._database.executemany("INSERT INTO alerts VALUES (?, ?)", rows)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")
            yield

    @contextmanager
    def _operation(self, what: str) -> Iterator[None]:
        with self._lock, self._translate_errors(what):
            try:
                yield
            finally:
                self._files.record_write()

    @contextmanager
    def _translate_errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            self._is_corrupt = self._is_corrupt or code in _CORRUPTION_CODES
            raise AlertStoreError(f"cannot {what} {self._path}: {error}") from error


def _decode(content: bytes) -> StoredAlert:
    """Decode a row. Raises msgspec.DecodeError."""
    try:
        return json_decoder(StoredAlert).decode(content)
    except msgspec.ValidationError:
        older = json_decoder(_OlderAlert).decode(content)
        # Files of builds before the first release have another word for "sent".
        deliveries = {
            key: {**delivery, "progress": "sent"}
            if delivery.get("progress") not in get_args(DeliveryProgress)
            else delivery
            for key, delivery in older.deliveries.items()
        }
        return convert_json({"alert": older.alert, "deliveries": deliveries}, StoredAlert)


def _open(path: Path) -> sqlite3.Connection:
    """Open or create the file. Raises AlertStoreError."""
    try:
        _require_regular_file(path)
        # Before SQLite does: its journal inherits the permissions of the database.
        path.touch(mode=0o600)
        database = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, timeout=_BUSY_SECONDS
        )
    except (OSError, sqlite3.Error) as error:
        raise _unusable_error(path, error) from error
    try:
        _prepare(database, path)
    except BaseException as error:
        database.close()
        if isinstance(error, sqlite3.Error):
            raise _unusable_error(path, error) from error
        raise
    return database


def _require_regular_file(path: Path) -> None:
    """Raises OSError for a pipe or device, on which opening would block."""
    if path.exists() and not path.is_file():
        raise OSError("not a regular file")


def _remove(path: Path) -> None:
    """Delete the file with its journal. Raises AlertStoreError."""
    try:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
    except OSError as error:
        raise _unusable_error(path, error) from error


def _unusable_error(path: Path, error: Exception) -> AlertStoreError:
    return AlertStoreError(f"cannot use the alerts in {path}: {error}; move it away to start empty")


def _prepare(database: sqlite3.Connection, path: Path) -> None:
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version not in (0, _SCHEMA_VERSION):
        raise AlertStoreError(
            f"the alerts in {path} have format {version}, supported is {_SCHEMA_VERSION}; "
            "move it away to start empty"
        )
    database.execute("PRAGMA journal_mode = WAL")
    database.execute(f"PRAGMA journal_size_limit = {_JOURNAL_BYTES}")
    database.execute("PRAGMA synchronous = NORMAL")
    database.execute(_TABLE)
    if version != _SCHEMA_VERSION:
        # An existing file is opened without a write, so that it works on a full disk.
        database.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
