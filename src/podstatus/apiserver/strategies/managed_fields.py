"""`metadata.managedFields` of status writes, reduced to what clients need.

The first writer of a status manages all of it; a later writer manages what it has changed: single
conditions, and whole fields otherwise. So a pod that only its node writes to carries one short
entry. A real server lists every field of every object.

Upstream: k8s.io/apiserver v0.36.4, pkg/endpoints/handlers/fieldmanager.
"""

import msgspec

from podstatus.apiserver.strategies.base import Document
from podstatus.kube.scalars.time import Time

_LEAVES = ("status", "reason", "message")
_MAX_MANAGERS = 10
"""As upstream; but the oldest entries are dropped, not merged."""
_MAX_NAME_LENGTH = 128

FieldPath = tuple[str, ...]
_ALL: FieldPath = ()
"""The path of the first writer: every field without another manager."""


def manager_name(field_manager: str, user_agent: str) -> str:
    """Return the client's fieldManager, or else the first word of its user agent."""
    name = field_manager or user_agent.partition("/")[0]
    return "".join(filter(str.isprintable, name))[:_MAX_NAME_LENGTH]


def update_managed_fields(new: Document, old: Document, manager: str, now: Time) -> Document:
    """Return the object with managedFields updated for a status write by `manager`."""
    entries = {entry["manager"]: entry for entry in old["metadata"].get("managedFields") or ()}
    changed = (
        _changed_paths(new.get("status") or {}, old.get("status") or {}) if entries else {_ALL}
    )
    mine = entries.pop(manager, None)
    result = []
    for entry in entries.values():
        managed = _managed_paths(entry)
        if remaining := managed - changed:
            result.append(
                entry if remaining == managed else entry | {"fieldsV1": _fields_v1(remaining)}
            )
    managed = changed if mine is None else _managed_paths(mine) | changed
    if managed:  # a writer that only removed fields manages nothing
        result.append(_entry(new["apiVersion"], manager, managed, now))
    return new | {"metadata": new["metadata"] | {"managedFields": result[-_MAX_MANAGERS:]}}


def _entry(api_version: str, manager: str, managed: set[FieldPath], now: Time) -> Document:
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": api_version,
        "time": now.wire,
        "fieldsType": "FieldsV1",
        "fieldsV1": _fields_v1({_ALL} if _ALL in managed else managed),
        "subresource": "status",
    }


def _changed_paths(new: Document, old: Document) -> set[FieldPath]:
    changed: set[FieldPath] = {
        (f"f:{name}",)
        for name in new.keys() | old.keys()
        if name != "conditions" and new.get(name) != old.get(name)
    }
    after, before = _by_type(new), _by_type(old)
    for kind in after:
        was, now = before.get(kind, {}), after[kind]
        key = f"k:{msgspec.json.encode({'type': kind}).decode()}"
        changed |= {
            ("f:conditions", key, f"f:{leaf}") for leaf in _LEAVES if now.get(leaf) != was.get(leaf)
        }
    return changed


def _by_type(status: Document) -> dict[str, Document]:
    return {c.get("type") or "": c for c in status.get("conditions") or ()}


def _managed_paths(entry: Document) -> set[FieldPath]:
    """Return the paths below the status that an entry's manager manages."""

    def walk(fields: Document, path: FieldPath) -> set[FieldPath]:
        if not fields:
            return {path}
        return {leaf for name, below in fields.items() for leaf in walk(below, (*path, name))}

    return walk(entry["fieldsV1"]["f:status"], _ALL)


def _fields_v1(paths: set[FieldPath]) -> Document:
    """Encode paths below the status as FieldsV1."""
    status: Document = {}
    for path in sorted(paths):
        below = status
        for name in path:
            below = below.setdefault(name, {})
    return {"f:status": status}
