"""The objects, each with the resource version of its last change, in memory and on the disk.

A change is in the database before anybody can read it, so a killed process loses nothing that
was acknowledged, and resource versions never go back. Used by one thread.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from podstatus.apiserver.strategy import Document

ADDED = "ADDED"
MODIFIED = "MODIFIED"
DELETED = "DELETED"

_TABLES = """
CREATE TABLE IF NOT EXISTS objects (
    resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    version INTEGER NOT NULL, data BLOB NOT NULL,
    UNIQUE (resource, namespace, name)
);
CREATE TABLE IF NOT EXISTS last_deletion (
    one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL
);
INSERT OR IGNORE INTO last_deletion VALUES (1, 0);
"""
_PUT = """
INSERT INTO objects VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET version = excluded.version, data = excluded.data
"""
_DELETE = "DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?"
_LAST_DELETION = "UPDATE last_deletion SET version = ?"
_LATEST = """
SELECT max(coalesce((SELECT max(version) FROM objects), 0), version) FROM last_deletion
"""
_FORMAT = 1
"""Of the database, in its `user_version`."""


class Key(NamedTuple):
    """Where an object is; objects of a cluster have an empty namespace. Lists are in this order."""

    namespace: str
    name: str


class Stored(msgspec.Struct, frozen=True):
    """An object as it is stored."""

    key: Key
    version: int
    data: bytes
    """JSON, with the resource version in it."""
    labels: dict[str, str]
    fields: dict[str, str]
    """What field selectors can ask for."""

    def document(self) -> Document:
        """The object, decoded anew."""
        document: Document = msgspec.json.decode(self.data)
        return document


class Change(msgspec.Struct, frozen=True):
    """What a write did."""

    type: str
    version: int
    new: Stored
    """For a deletion: the last state, with the version of the deletion."""
    old: Stored | None


class StoreError(Exception):
    """The database cannot be used; the message says what to do."""


Fields = Callable[[str, Document], dict[str, str]]
Listener = Callable[[str, Change], None]


class Store:
    """All objects, by resource. `listener` is told of every change, after it is on the disk."""

    def __init__(self, database: sqlite3.Connection | None, fields: Fields) -> None:
        self._database = database
        self._fields = fields
        self._objects: dict[str, dict[Key, Stored]] = {}
        self._sorted: dict[str, list[Key]] = {}
        self.version = 0
        self.listener: Listener = _nobody

    @classmethod
    def open(cls, path: Path | None, fields: Fields) -> "Store":
        """The store in this file, or one in memory. Raises StoreError."""
        if path is None:
            return cls(None, fields)
        try:
            # First, since SQLite gives its journal the permissions of the database.
            path.touch(mode=0o600)
            path.chmod(0o600)
            database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            _prepare(database, path)
            store = cls(database, fields)
            store._load(database)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(
                f"cannot use the database {path}: {error}; is another server using the folder, "
                "or is the disk full?"
            ) from error
        return store

    def close(self) -> None:
        """Let go of the file."""
        if self._database is not None:
            self._database.close()

    def get(self, resource: str, key: Key) -> Stored | None:
        """One object."""
        return self._objects.get(resource, {}).get(key)

    def objects(self, resource: str, namespace: str | None = None) -> Iterator[Stored]:
        """All objects of a resource, or of one namespace, in the order of their keys."""
        objects = self._objects.get(resource, {})
        for key in self._keys(resource):
            if namespace is None or key.namespace == namespace:
                yield objects[key]

    def count(self, resource: str) -> int:
        """How many objects of a resource there are."""
        return len(self._objects.get(resource, {}))

    def put(self, resource: str, key: Key, document: Document) -> Stored:
        """Create or replace an object; the document gets the next resource version."""
        version = self.version + 1
        new = self._stored(resource, key, version, document)
        self._write(version, (_PUT, (resource, *key, version, new.data)))
        objects = self._objects.setdefault(resource, {})
        old = objects.get(key)
        if old is None:
            self._sorted.pop(resource, None)
        objects[key] = new
        self.listener(resource, Change(ADDED if old is None else MODIFIED, version, new, old))
        return new

    def delete(
        self, resource: str, key: Key, document: Document, *, marked_first: bool = False
    ) -> Stored:
        """Remove an object; its last state gets the next resource version.

        With `marked_first` watchers see it changed to that state before it goes; to the disk it
        is one step, so that no crash leaves an object behind that was to go.
        """
        versions = [self.version + 1 + step for step in range(1 + marked_first)]
        states = [self._stored(resource, key, version, document) for version in versions]
        self._write(versions[-1], (_DELETE, (resource, *key)), (_LAST_DELETION, (versions[-1],)))
        old = self._objects[resource].pop(key)
        self._sorted.pop(resource, None)
        if marked_first:
            self.listener(resource, Change(MODIFIED, versions[0], states[0], old))
            old = states[0]
        self.listener(resource, Change(DELETED, versions[-1], states[-1], old))
        return states[-1]

    def _stored(self, resource: str, key: Key, version: int, document: Document) -> Stored:
        document = versioned(document, version)
        return Stored(
            key,
            version,
            msgspec.json.encode(document),
            document["metadata"].get("labels") or {},
            self._fields(resource, document),
        )

    def _keys(self, resource: str) -> list[Key]:
        keys = self._sorted.get(resource)
        if keys is None:
            keys = self._sorted[resource] = sorted(self._objects.get(resource, {}))
        return keys

    def _write(self, version: int, *statements: tuple[str, tuple[Any, ...]]) -> None:
        if self._database is not None:
            try:
                _execute(self._database, statements)
            except sqlite3.Error as error:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise StoreError(
                    f"cannot write to the database: {error}; nothing was changed: make room, "
                    "then try again"
                ) from error
        self.version = version

    def _load(self, database: sqlite3.Connection) -> None:
        (self.version,) = database.execute(_LATEST).fetchone()
        rows = database.execute("SELECT resource, namespace, name, version, data FROM objects")
        for resource, namespace, name, version, data in rows:
            key, document = Key(namespace, name), msgspec.json.decode(data)
            labels = document["metadata"].get("labels") or {}
            stored = Stored(key, version, data, labels, self._fields(resource, document))
            self._objects.setdefault(resource, {})[key] = stored


def versioned(document: Document, version: int) -> Document:
    """The document with this resource version."""
    return document | {"metadata": document["metadata"] | {"resourceVersion": str(version)}}


def _nobody(resource: str, change: Change) -> None:
    """Nobody listens yet."""


def _execute(
    database: sqlite3.Connection, statements: Sequence[tuple[str, tuple[Any, ...]]]
) -> None:
    """All statements or none; one alone is a transaction anyway."""
    if len(statements) > 1:
        database.execute("BEGIN")
    for statement, values in statements:
        database.execute(statement, values)
    if len(statements) > 1:
        database.execute("COMMIT")


def _prepare(database: sqlite3.Connection, path: Path) -> None:
    (found,) = database.execute("PRAGMA user_version").fetchone()
    if found not in (0, _FORMAT):
        raise StoreError(
            f"the database {path} has format {found}, this version knows {_FORMAT}: "
            "use the podstatus that wrote it, or another folder"
        )
    database.execute("PRAGMA locking_mode = EXCLUSIVE")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
    database.executescript(_TABLES)
    database.execute(f"PRAGMA user_version = {_FORMAT}")
