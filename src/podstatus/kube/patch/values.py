"""The patch that turns one value into another, without their documents where that can be.

It is the very patch between the two documents. But those are of some hundred fields, of which a
patch of a status has five, and a node makes one for every status that it sends.
"""

from collections.abc import Iterator
from itertools import compress
from operator import ne
from typing import Any, TypeAlias

from msgspec import structs

from podstatus.kube.encoding.codec import FieldEncoding, encode_field, field_encodings
from podstatus.kube.encoding.go_json import ABSENT, Document, JsonValue
from podstatus.kube.encoding.wire import Wire
from podstatus.kube.patch import create_two_way_patch
from podstatus.kube.patch.lists import SET_ORDER
from podstatus.kube.patch.schema import Schema

Elements: TypeAlias = tuple[Any, ...]


def create_value_patch(old: Wire, new: Wire, schema: Schema) -> Document:
    """The strategic merge patch between two values of one kind. Raises PatchError."""
    patch: Document = {}
    for was, now, field in _changed_fields(old, new):
        if type(now) is str and type(was) is str and now and now.isascii():
            patch[field.name] = now  # most changes are such: printed as it is, and was other before
            continue
        are_lists = bool(was and now) and type(was) is tuple
        if are_lists and (merged := _list_patch(field.name, was, now, schema)) is not None:
            patch |= merged
            continue
        is_replaced = are_lists and _is_atomic_change(field.name, was, now, schema)
        after, before = (
            encode_field(now, field),
            ABSENT if is_replaced else encode_field(was, field),
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
    """What differs: before, after, and how it is printed. Most fields do not, and are not seen."""
    before, after = structs.astuple(old), structs.astuple(new)
    fields = zip(before, after, field_encodings(type(old)), strict=True)
    return compress(fields, map(ne, before, after))


def _list_patch(name: str, old: Elements, new: Elements, schema: Schema) -> Document | None:
    """The patch of a list with a merge key; None if it is none, or its elements are others now."""
    element, how = schema.list_field(name)
    if not how.merge or how.retain_keys or not how.merge_key:
        return None
    keys = _shared_keys(old, new, how.merge_key)
    if not keys:
        return None
    changes: list[JsonValue] = []
    for was, now, key in zip(old, new, keys, strict=True):
        patch = {} if was == now else create_value_patch(was, now, element)
        if patch:
            changes.append(patch | {how.merge_key: key})
    order: list[JsonValue] = [{how.merge_key: key} for key in keys]
    return {name: changes, f"{SET_ORDER}/{name}": order} if changes else {}


def _is_atomic_change(name: str, old: Elements, new: Elements, schema: Schema) -> bool:
    """Whether it is a list that goes as a whole, and surely other than it was."""
    _, how = schema.list_field(name)
    return not how.merge and (len(old) != len(new) or any(map(_differs_in_scalar, old, new)))


def _differs_in_scalar(old: object, new: object) -> bool:
    """Whether they differ in a number, or in a yes or no, which nothing else is printed like."""
    if not isinstance(old, Wire) or not isinstance(new, Wire):
        return False
    for was, now, _ in _changed_fields(old, new):
        if type(was) is type(now) and type(now) in _SCALAR_TYPES:
            return True
    return False


_SCALAR_TYPES = frozenset({bool, int})


def _shared_keys(old: Elements, new: Elements, merge_key: str) -> list[str]:
    """What tells the elements apart; nothing unless it does, and is the same in both lists."""
    keys = [getattr(element, merge_key, "") for element in new]
    if keys != [getattr(element, merge_key, "") for element in old]:
        return []
    for key in keys:
        if type(key) is not str or not key or not key.isascii():
            return []
    return keys if len(set(keys)) == len(keys) else []
