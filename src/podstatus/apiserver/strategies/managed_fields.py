"""Who has written what of a status, as far as others need it: `metadata.managedFields`.

The first writer of a status is said to manage all of it, everybody else what they changed since:
conditions one by one, of the rest whole fields. So a pod that only its node writes to carries one
short entry. A real server lists every field of every object.

Upstream: k8s.io/apiserver v0.36.4, pkg/endpoints/handlers/fieldmanager.
"""

import msgspec

from podstatus.apiserver.strategies.base import Document
from podstatus.kube.scalars.time import Time

_LEAVES = ("status", "reason", "message")
_MAX_MANAGERS = 10
"""As upstream; the oldest are left out, not put together."""
_MAX_NAME_LENGTH = 128

FieldPath = tuple[str, ...]
_ALL: FieldPath = ()
"""The path of the first writer: whatever nobody else manages."""


def manager_name(field_manager: str, user_agent: str) -> str:
    """How a client is called: as it asks for, or by the first word of its user agent."""
    name = field_manager or user_agent.partition("/")[0]
    return "".join(filter(str.isprintable, name))[:_MAX_NAME_LENGTH]


def update_managed_fields(new: Document, old: Document, manager: str, now: Time) -> Document:
    """An object whose status a client has changed, with who manages what of it."""
    known = {entry["manager"]: entry for entry in old["metadata"].get("managedFields") or ()}
    changed = _changed_paths(new.get("status") or {}, old.get("status") or {}) if known else {_ALL}
    mine = known.pop(manager, None)
    entries = []
    for entry in known.values():
        managed = _managed_paths(entry)
        if left := managed - changed:
            entries.append(entry if left == managed else entry | {"fieldsV1": _fields_v1(left)})
    managed = changed if mine is None else _managed_paths(mine) | changed
    if managed:  # who only took something away manages nothing
        entries.append(_entry(new["apiVersion"], manager, managed, now))
    return new | {"metadata": new["metadata"] | {"managedFields": entries[-_MAX_MANAGERS:]}}


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
    """What an entry says that its manager manages, below the status."""

    def walk(fields: Document, path: FieldPath) -> set[FieldPath]:
        if not fields:
            return {path}
        return {leaf for name, below in fields.items() for leaf in walk(below, (*path, name))}

    return walk(entry["fieldsV1"]["f:status"], _ALL)


def _fields_v1(paths: set[FieldPath]) -> Document:
    """Such paths as an entry tells them."""
    status: Document = {}
    for path in sorted(paths):
        below = status
        for name in path:
            below = below.setdefault(name, {})
    return {"f:status": status}
