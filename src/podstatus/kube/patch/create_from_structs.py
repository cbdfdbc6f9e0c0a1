"""Create the patch between two values, without encoding whole documents where possible.

The result equals the patch between the two documents. But these have some hundred fields, of which
a status patch changes about five, and a node creates a patch for every status that it sends.
"""

from collections.abc import Iterator
from itertools import compress
from operator import ne
from typing import Any, TypeAlias

from msgspec import structs

from podstatus.kube.encoding.codec import FieldEncoding, encode_field, field_encodings
from podstatus.kube.encoding.go_json import ABSENT, Document, JsonValue
from podstatus.kube.encoding.wire_struct import Wire
from podstatus.kube.patch import create_two_way_patch
from podstatus.kube.patch.lists import SET_ORDER
from podstatus.kube.patch.schema import Schema

Elements: TypeAlias = tuple[Any, ...]


def create_value_patch(old: Wire, new: Wire, schema: Schema) -> Document:
    """Return the strategic merge patch between two values of one type. Raises PatchError."""
    patch: Document = {}
    for previous, current, field in _changed_fields(old, new):
        if type(current) is str and type(previous) is str and current and current.isascii():
            patch[field.name] = current  # the most frequent change: printed as it is
            continue
        are_lists = bool(previous and current) and type(previous) is tuple
        if are_lists and (merged := _list_patch(field.name, previous, current, schema)) is not None:
            patch |= merged
            continue
        is_replaced = are_lists and _is_atomic_change(field.name, previous, current, schema)
        after, before = (
            encode_field(current, field),
            ABSENT if is_replaced else encode_field(previous, field),
        )
        if after is ABSENT:
            if before is not ABSENT:
                patch[field.name] = None
        elif before is ABSENT:
            patch[field.name] = after
        elif isinstance(before, dict | list) and isinstance(after, dict | list):
            patch |= create_two_way_patch({field.name: before}, {field.name: after}, schema)
        elif before != after:
            patch[field.name] = after
    return patch


def _changed_fields(old: Wire, new: Wire) -> Iterator[tuple[Any, Any, FieldEncoding]]:
    """Return old value, new value and encoding of the fields that differ."""
    before, after = structs.astuple(old), structs.astuple(new)
    fields = zip(before, after, field_encodings(type(old)), strict=True)
    return compress(fields, map(ne, before, after))


def _list_patch(name: str, old: Elements, new: Elements, schema: Schema) -> Document | None:
    """Return the patch of a list with a merge key; None if keys are missing or have changed."""
    element, field = schema.list_field(name)
    if not field.merge or field.retain_keys or not field.merge_key:
        return None
    keys = _shared_keys(old, new, field.merge_key)
    if not keys:
        return None
    changes: list[JsonValue] = []
    for previous, current, key in zip(old, new, keys, strict=True):
        patch = {} if previous == current else create_value_patch(previous, current, element)
        if patch:
            changes.append(patch | {field.merge_key: key})
    order: list[JsonValue] = [{field.merge_key: key} for key in keys]
    return {name: changes, f"{SET_ORDER}/{name}": order} if changes else {}


def _is_atomic_change(name: str, old: Elements, new: Elements, schema: Schema) -> bool:
    """Return whether it is a list that is replaced as a whole and is certain to differ."""
    _, field = schema.list_field(name)
    return not field.merge and (len(old) != len(new) or any(map(_differs_in_scalar, old, new)))


def _differs_in_scalar(old: object, new: object) -> bool:
    """Return whether a number or boolean differs, which is certain to be printed differently."""
    if not isinstance(old, Wire) or not isinstance(new, Wire):
        return False
    for previous, current, _ in _changed_fields(old, new):
        if type(previous) is type(current) and type(current) in _SCALAR_TYPES:
            return True
    return False


_SCALAR_TYPES = frozenset({bool, int})


def _shared_keys(old: Elements, new: Elements, merge_key: str) -> list[str]:
    """Return the merge keys if they are unique and equal in both lists, otherwise none."""
    keys = [getattr(element, merge_key, "") for element in new]
    if keys != [getattr(element, merge_key, "") for element in old]:
        return []
    for key in keys:
        if type(key) is not str or not key or not key.isascii():
            return []
    return keys if len(set(keys)) == len(keys) else []
