"""Alerts that live, and who has been told of them, on the disk.

    store = AlertStore.open(root_dir / "alerts.db")
    store.write({alert.id: KeptAlert(alert=alert)}, gone=[])
    store.read()

One row per alert. SQLite as the history has it: WAL and `synchronous=NORMAL`, so that a killed
process loses nothing that was written. One thread at a time. Webhook addresses, which may hold
secrets, are in it: it is for its owner alone.

    StoreError     the file cannot be used; the message says why and what to do
"""

import logging
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from podstatus.alerts.alert import AlertId
from podstatus.alerts.delivery import KeptAlert
from podstatus.base.typed_json import json_decoder

logger = logging.getLogger(__name__)

_TABLE = "CREATE TABLE IF NOT EXISTS alerts (id TEXT PRIMARY KEY, kept BLOB NOT NULL) WITHOUT ROWID"
_FORMAT = 1
"""Of the database, in its `user_version`."""
_BUSY_SECONDS = 5.0
_JOURNAL_BYTES = 2**20

_encoder = msgspec.json.Encoder()


class StoreError(Exception):
    """The file of alerts cannot be used."""


class AlertStore:
    """The file. All methods raise StoreError."""

    def __init__(self, database: sqlite3.Connection, path: Path) -> None:
        self._database = database
        self._path = path
        self._use = threading.Lock()

    @classmethod
    def open(cls, path: Path) -> "AlertStore":
        """The alerts in this file; it is made if it is not there."""
        try:
            # First, since SQLite gives its journal the permissions of the database.
            path.touch(mode=0o600)
            database = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=_BUSY_SECONDS
            )
        except (OSError, sqlite3.Error) as error:
            raise _unusable(path, error) from error
        try:
            _prepare(database, path)
        except BaseException as error:
            database.close()
            if isinstance(error, sqlite3.Error):
                raise _unusable(path, error) from error
            raise
        return cls(database, path)

    def close(self) -> None:
        """Let go of the file. While a thread waits for a disk, the end of the process does that."""
        if not self._use.acquire(blocking=False):
            # To close it now would take the ground from under that thread: SQLite crashes.
            raise StoreError(f"cannot close {self._path}: it is being written")
        try:
            with self._failures_told("close"):
                self._database.close()
        finally:
            self._use.release()

    def read(self) -> dict[AlertId, KeptAlert]:
        """All that is kept. What cannot be understood is logged, and left out."""
        with self._told("read"):
            rows = self._database.execute("SELECT id, kept FROM alerts ORDER BY id").fetchall()
        found = {}
        for id_, kept in rows:
            try:
                found[AlertId(id_)] = json_decoder(KeptAlert).decode(kept)
            except msgspec.DecodeError as error:
                logger.error("kept alert not understood, left out: id=%s error=%s", id_, error)
        return found

    def write(self, kept: Mapping[AlertId, KeptAlert], gone: Iterable[AlertId]) -> None:
        """Keep these, and forget those, all or nothing."""
        rows = [(id_, _encoder.encode(alert)) for id_, alert in kept.items()]
        with self._told("write to"), self._transaction():
            self._database.executemany("DELETE FROM alerts WHERE id = ?", [(id_,) for id_ in gone])
            self._database.executemany("INSERT OR REPLACE INTO alerts VALUES (?, ?)", rows)

    def replace(self, kept: Mapping[AlertId, KeptAlert]) -> None:
        """Keep these and nothing else, all or nothing."""
        rows = [(id_, _encoder.encode(alert)) for id_, alert in kept.items()]
        with self._told("write to"), self._transaction():
            self._database.execute("DELETE FROM alerts")
            self._database.executemany("INSERT INTO alerts VALUES (?, ?)", rows)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")
            yield

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        with self._use, self._failures_told(what):
            yield

    @contextmanager
    def _failures_told(self, what: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(f"cannot {what} {self._path}: {error}") from error


def _unusable(path: Path, error: Exception) -> StoreError:
    return StoreError(f"cannot use the alerts in {path}: {error}; move it away to begin anew")


def _prepare(database: sqlite3.Connection, path: Path) -> None:
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version not in (0, _FORMAT):
        raise StoreError(
            f"the alerts in {path} have the format {version}, known is {_FORMAT}; "
            "move it away to begin anew"
        )
    database.execute("PRAGMA journal_mode = WAL")
    database.execute(f"PRAGMA journal_size_limit = {_JOURNAL_BYTES}")
    database.execute("PRAGMA synchronous = NORMAL")
    database.execute(_TABLE)
    if version != _FORMAT:
        # What is there is opened without a write, also on a full disk.
        database.execute(f"PRAGMA user_version = {_FORMAT}")
