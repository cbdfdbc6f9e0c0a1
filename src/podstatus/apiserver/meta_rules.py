"""What becomes of the metadata of an object that is changed, the same for every resource.

Upstream: apiserver v0.36.4, pkg/registry/rest/update.go.
"""

from podstatus.apiserver.strategy import Document

_KEPT = ("name", "namespace", "uid", "deletionGracePeriodSeconds")
_FIXED = ("generation", "creationTimestamp")


def updated_meta(new: Document, old: Document) -> Document:
    """The object with the metadata that an update cannot take away or change."""
    before = old.get("metadata") or {}
    meta = dict(new.get("metadata") or {})
    for key in _KEPT:
        if key in before and not meta.get(key):
            meta[key] = before[key]
    for key in _FIXED:
        meta.pop(key, None)
        if key in before:
            meta[key] = before[key]
    if before.get("deletionTimestamp"):
        meta["deletionTimestamp"] = before["deletionTimestamp"]
    return new | {"metadata": meta}


def changed_meta(document: Document, **changes: object) -> Document:
    """The object with these fields of its metadata set, or taken away if they are None."""
    meta = dict(document.get("metadata") or {}) | changes
    kept = {key: value for key, value in meta.items() if value is not None}
    return document | {"metadata": kept}
