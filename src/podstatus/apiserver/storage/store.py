"""The object store: every object with its resource version, in memory and on disk.

A change is written to the database before it is readable, so a killed process loses nothing that
was acknowledged, and resource versions never decrease. Not thread-safe.
"""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from podstatus.apiserver.storage.integer_bounds import clamp_integers
from podstatus.apiserver.storage.marker import StorageError
from podstatus.apiserver.storage.sqlite_file import (
    ObjectDatabase,
    ObjectRow,
    Statement,
    damaged_message,
)
from podstatus.apiserver.strategies.base import Document

__all__ = ["StorageError", "StorageKey", "Store", "StoreChange", "StoredObject"]

logger = logging.getLogger(__name__)

ADDED = "ADDED"
MODIFIED = "MODIFIED"
DELETED = "DELETED"

_PUT = """
INSERT INTO objects VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET version = excluded.version, data = excluded.data
"""
_DELETE = "DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?"
_LAST_DELETION = "UPDATE last_deletion SET version = ?"


class StorageKey(NamedTuple):
    """The key of an object; cluster-scoped ones have no namespace. Lists are sorted by it."""

    namespace: str
    name: str


class StoredObject(msgspec.Struct, frozen=True):
    """An object with its encoded form and selectable values."""

    key: StorageKey
    version: int
    data: bytes
    """JSON, including the resource version."""
    labels: dict[str, str]
    fields: dict[str, str]
    """The values that field selectors can match."""

    def document(self) -> Document:
        """Decode the object; each call returns a new document."""
        document: Document = msgspec.json.decode(self.data)
        return document


class StoreChange(msgspec.Struct, frozen=True):
    """The result of a write, for watches and controllers."""

    type: str
    version: int
    new: StoredObject
    """For a deletion: the last state, with the version of the deletion."""
    old: StoredObject | None


FieldsFunc = Callable[[str, Document], dict[str, str]]
ChangeListener = Callable[[str, StoreChange], None]


class Store:
    """All objects, by resource. `listener` is called after every durable change."""

    def __init__(self, file: ObjectDatabase | None, fields: FieldsFunc) -> None:
        """Load the objects from `file`; None stores them in memory only. Raises StorageError."""
        self._file = file
        self._fields = fields
        self._objects: dict[str, dict[StorageKey, StoredObject]] = {}
        self._sorted_keys: dict[str, list[StorageKey]] = {}
        self.version = 0
        self.listener: ChangeListener = lambda *_: None
        if file is not None:
            self._load(file)

    @classmethod
    def open(cls, path: Path | None, fields: FieldsFunc, *, cluster: str = "") -> "Store":
        """Open the store in this file, or one in memory. Raises StorageError.

        `cluster` is the ID of the cluster that the file must hold, if known.
        """
        if path is None:
            return cls(None, fields)
        file = ObjectDatabase.open(path, cluster=cluster)
        try:
            return cls(file, fields)
        except BaseException:
            file.close()
            raise

    @property
    def cluster(self) -> str:
        """The cluster ID; empty for a store in memory."""
        return "" if self._file is None else self._file.cluster

    def close(self) -> None:
        """Close the file; first rewrite it if another program changed it."""
        if self._file is None:
            return
        try:
            self._repair(self._file)
        except StorageError as error:
            logger.error("cannot rewrite the database, objects are lost: error=%s", error)
        self._file.close()

    def get(self, resource: str, key: StorageKey) -> StoredObject | None:
        """Return an object, None if it does not exist."""
        return self._objects.get(resource, {}).get(key)

    def objects(self, resource: str, namespace: str | None = None) -> Iterator[StoredObject]:
        """Yield the objects of a resource, or of one namespace, sorted by key."""
        objects = self._objects.get(resource, {})
        for key in self._keys(resource):
            if namespace is None or key.namespace == namespace:
                yield objects[key]

    def count(self, resource: str) -> int:
        return len(self._objects.get(resource, {}))

    def put(self, resource: str, key: StorageKey, document: Document) -> StoredObject:
        """Create or replace an object with the next resource version. Raises StorageError."""
        version = self.version + 1
        new = self._new_object(resource, key, version, document)
        self._write(version, (_PUT, (resource, *key, version, new.data)))
        objects = self._objects.setdefault(resource, {})
        old = objects.get(key)
        if old is None:
            self._sorted_keys.pop(resource, None)
        objects[key] = new
        self.listener(resource, StoreChange(ADDED if old is None else MODIFIED, version, new, old))
        return new

    def delete(
        self, resource: str, key: StorageKey, document: Document, *, marked_first: bool = False
    ) -> StoredObject:
        """Remove an object; return its last state with the next resource version.

        With `marked_first`, watches see MODIFIED with that state before DELETED. On disk it is one
        step, so a crash never leaves a marked object behind. Raises StorageError.
        """
        versions = [self.version + 1 + step for step in range(1 + marked_first)]
        states = [self._new_object(resource, key, version, document) for version in versions]
        self._write(versions[-1], (_DELETE, (resource, *key)), (_LAST_DELETION, (versions[-1],)))
        old = self._objects[resource].pop(key)
        self._sorted_keys.pop(resource, None)
        if marked_first:
            self.listener(resource, StoreChange(MODIFIED, versions[0], states[0], old))
            old = states[0]
        self.listener(resource, StoreChange(DELETED, versions[-1], states[-1], old))
        return states[-1]

    def _new_object(
        self, resource: str, key: StorageKey, version: int, document: Document
    ) -> StoredObject:
        document = with_resource_version(document, version)
        return StoredObject(
            key,
            version,
            msgspec.json.encode(document),
            document["metadata"].get("labels") or {},
            self._fields(resource, document),
        )

    def _keys(self, resource: str) -> list[StorageKey]:
        keys = self._sorted_keys.get(resource)
        if keys is None:
            keys = self._sorted_keys[resource] = sorted(self._objects.get(resource, {}))
        return keys

    def _write(self, version: int, *statements: Statement) -> None:
        if self._file is not None:
            self._repair(self._file)
            self._file.write(version, statements)
        self.version = version

    def _repair(self, file: ObjectDatabase) -> None:
        """Rewrite the file if another program changed it: memory holds all acknowledged changes."""
        if file.is_changed():
            file.rebuild(self._rows(), self.version)

    def _rows(self) -> Iterator[ObjectRow]:
        for resource, objects in self._objects.items():
            for key, stored in objects.items():
                yield resource, key.namespace, key.name, stored.version, stored.data

    def _load(self, file: ObjectDatabase) -> None:
        self.version = file.version
        clamped = []
        for resource, namespace, name, version, data in file.rows():
            key = StorageKey(namespace, name)
            try:
                decoded = msgspec.json.decode(data)
                document = clamp_integers(resource, data, decoded)
                labels = document["metadata"].get("labels") or {}
                fields = self._fields(resource, document)
            except (msgspec.DecodeError, AttributeError, LookupError, TypeError) as error:
                where = f"{resource} {namespace}/{name} is not an object"
                raise StorageError(damaged_message(file.path, f"{where} ({error})")) from error
            if document is not decoded:
                clamped.append(f"{resource}/{namespace}/{name}")
            text = data if document is decoded else msgspec.json.encode(document)
            stored = StoredObject(key, version, text, labels, fields)
            self._objects.setdefault(resource, {})[key] = stored
        if clamped:
            logger.warning(
                "integers out of the range of their types were clamped: count=%d first=%s",
                len(clamped),
                clamped[0],
            )


def with_resource_version(document: Document, version: int) -> Document:
    """Return the document with metadata.resourceVersion set."""
    return document | {"metadata": document["metadata"] | {"resourceVersion": str(version)}}
