"""SQLite file with active alerts and the progress of their deliveries.

    store = AlertStore.open(root_dir / "alerts.db")
    store.write({alert.id: StoredAlert(alert=alert)}, removed=[])
    store.read()

One row per alert. One thread at a time. The file holds webhook URLs, which may be secrets, so only
its owner can read it. `check`, which also precedes each write, detects that another program deleted
or damaged the file while it is in use, and replaces it by an empty one.

    AlertStoreError     the file cannot be used; the message says why and what to do
"""

import logging
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from podstatus.alerts.delivery.decide.queue import StoredAlert
from podstatus.alerts.model import AlertId
from podstatus.base.msgspec_json import json_decoder
from podstatus.base.sqlite_database import (
    DatabaseFormat,
    DatabaseFormatError,
    is_corruption,
    open_database,
    remove_database,
)
from podstatus.base.sqlite_file_monitor import SqliteFileMonitor

logger = logging.getLogger(__name__)

_FORMAT = DatabaseFormat(
    version=1,
    tables="""
CREATE TABLE IF NOT EXISTS alerts (id TEXT PRIMARY KEY, kept BLOB NOT NULL) WITHOUT ROWID;
""",
    journal_bytes=2**20,
)

_encoder = msgspec.json.Encoder()


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
        alerts, decoder = {}, json_decoder(StoredAlert)
        for id_, content in rows:
            try:
                alerts[AlertId(id_)] = decoder.decode(content)
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
            self._is_corrupt = self._is_corrupt or is_corruption(error)
            raise AlertStoreError(f"cannot {what} {self._path}: {error}") from error


def _open(path: Path) -> sqlite3.Connection:
    """Open or create the file. Raises AlertStoreError."""
    try:
        return open_database(path, _FORMAT)
    except DatabaseFormatError as error:
        raise AlertStoreError(
            f"the alerts in {path} have format {error.version}, supported is {_FORMAT.version}; "
            "move it away to start empty"
        ) from error
    except (OSError, sqlite3.Error) as error:
        raise _unusable_error(path, error) from error


def _remove(path: Path) -> None:
    """Delete the file with its journal. Raises AlertStoreError."""
    try:
        remove_database(path)
    except OSError as error:
        raise _unusable_error(path, error) from error


def _unusable_error(path: Path, error: Exception) -> AlertStoreError:
    return AlertStoreError(f"cannot use the alerts in {path}: {error}; move it away to start empty")
