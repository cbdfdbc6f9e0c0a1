"""The objects, each with the resource version of its last change, in memory and on the disk.

A change is in the database before anybody can read it, so a killed process loses nothing that
was acknowledged, and resource versions never go back. Used by one thread.
"""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from podstatus.apiserver.storage.integer_bounds import clamp_integers
from podstatus.apiserver.storage.sqlite_file import (
    ObjectDatabase,
    ObjectRow,
    Statement,
    StorageError,
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
    """Where an object is; objects of a cluster have an empty namespace. Lists are in this order."""

    namespace: str
    name: str


class StoredObject(msgspec.Struct, frozen=True):
    """An object as it is stored."""

    key: StorageKey
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


class StoreChange(msgspec.Struct, frozen=True):
    """What a write did."""

    type: str
    version: int
    new: StoredObject
    """For a deletion: the last state, with the version of the deletion."""
    old: StoredObject | None


FieldsFunc = Callable[[str, Document], dict[str, str]]
ChangeListener = Callable[[str, StoreChange], None]


class Store:
    """All objects, by resource. `listener` is told of every change, after it is on the disk."""

    def __init__(self, file: ObjectDatabase | None, fields: FieldsFunc) -> None:
        """With what is in the file; None: it is in memory alone. Raises StoreError."""
        self._file = file
        self._fields = fields
        self._objects: dict[str, dict[StorageKey, StoredObject]] = {}
        self._sorted_keys: dict[str, list[StorageKey]] = {}
        self.version = 0
        self.listener: ChangeListener = _ignore_change
        if file is not None:
            self._load(file)

    @classmethod
    def open(cls, path: Path | None, fields: FieldsFunc, *, cluster: str = "") -> "Store":
        """The store in this file, or one in memory. Raises StoreError.

        `cluster` is the ID of the cluster that the file has to hold, if that is known.
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
        """The ID of the cluster that the objects belong to; empty in memory."""
        return "" if self._file is None else self._file.cluster

    def close(self) -> None:
        """Let go of the file, which has everything by then if that is possible."""
        if self._file is None:
            return
        try:
            self._repair(self._file)
        except StorageError as error:
            logger.error("objects of the cluster are lost: error=%s", error)
        self._file.close()

    def get(self, resource: str, key: StorageKey) -> StoredObject | None:
        """One object."""
        return self._objects.get(resource, {}).get(key)

    def objects(self, resource: str, namespace: str | None = None) -> Iterator[StoredObject]:
        """All objects of a resource, or of one namespace, in the order of their keys."""
        objects = self._objects.get(resource, {})
        for key in self._keys(resource):
            if namespace is None or key.namespace == namespace:
                yield objects[key]

    def count(self, resource: str) -> int:
        """How many objects of a resource there are."""
        return len(self._objects.get(resource, {}))

    def put(self, resource: str, key: StorageKey, document: Document) -> StoredObject:
        """Create or replace an object; the document gets the next resource version."""
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
        """Remove an object; its last state gets the next resource version.

        With `marked_first` watchers see it changed to that state before it goes; to the disk it
        is one step, so that no crash leaves an object behind that was to go.
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
        """Memory has all that was acknowledged, whatever others have made of the file."""
        if file.is_changed():
            file.rebuild(self._rows(), self.version)

    def _rows(self) -> Iterator[ObjectRow]:
        for resource, objects in self._objects.items():
            for key, stored in objects.items():
                yield resource, key.namespace, key.name, stored.version, stored.data

    def _load(self, file: ObjectDatabase) -> None:
        self.version = file.version
        beyond = []
        for resource, namespace, name, version, data in file.rows():
            key = StorageKey(namespace, name)
            try:
                read = msgspec.json.decode(data)
                document = clamp_integers(resource, data, read)
                labels = document["metadata"].get("labels") or {}
                fields = self._fields(resource, document)
            except (msgspec.DecodeError, AttributeError, LookupError, TypeError) as error:
                where = f"{resource} {namespace}/{name} is not an object"
                raise StorageError(damaged_message(file.path, f"{where} ({error})")) from error
            if document is not read:
                beyond.append(f"{resource}/{namespace}/{name}")
            text = data if document is read else msgspec.json.encode(document)
            stored = StoredObject(key, version, text, labels, fields)
            self._objects.setdefault(resource, {})[key] = stored
        if beyond:
            logger.warning(
                "integers beyond their types are read as the nearest that fit: count=%d first=%s",
                len(beyond),
                beyond[0],
            )


def with_resource_version(document: Document, version: int) -> Document:
    """The document with this resource version."""
    return document | {"metadata": document["metadata"] | {"resourceVersion": str(version)}}


def _ignore_change(resource: str, change: StoreChange) -> None:
    """Nobody listens yet."""
