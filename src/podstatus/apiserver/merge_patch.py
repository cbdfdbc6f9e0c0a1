"""JSON merge patches (RFC 7386): a null removes, an object is merged, anything else replaces.

Upstream: gopkg.in/evanphx/json-patch.v4, merge.go v4.13.0. Unlike the RFC it also takes nulls
out of objects in a list, if the list replaces something that is no object.
"""

from typing import Any


def apply_merge_patch(document: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """The document that the patch makes. Neither is changed."""
    result = dict(document)
    for key, change in patch.items():
        if change is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), change)
    return result


def _merged(old: Any, change: Any) -> Any:
    if not isinstance(old, dict):
        return _without_nulls(change)
    return apply_merge_patch(old, change) if isinstance(change, dict) else change


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return list(map(_without_nulls, value)) if isinstance(value, list) else value
