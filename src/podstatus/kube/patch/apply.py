"""Apply a strategic merge patch to a document.

Upstream: StrategicMergePatch, mergeMap and mergeSlice, strategicpatch/patch.go v0.36.4. Upstream
processes the keys of a patch in the random order of a Go map; here the order is that of the patch.
mergeSlice modifies the live list in place while its caller still uses it to determine the order of
the result, so `merge_lists` also returns the live list in its modified form.
"""

from collections.abc import Callable
from functools import partial

from podstatus.kube.encoding.go_json import ABSENT, Absent, Document, JsonValue
from podstatus.kube.patch.errors import PatchError, PatchFormatError
from podstatus.kube.patch.lists import (
    DELETE,
    DELETE_FROM_LIST,
    DIRECTIVE,
    REPLACE,
    RETAIN_KEYS,
    SET_ORDER,
    Positions,
    check_element_order,
    deduplicate,
    element_identity,
    element_type,
    has_directive,
    merge_key_value,
    merge_order,
)
from podstatus.kube.patch.schema import Field, Schema

MergeElement = Callable[[Document, Document], Document]
MergedAndLive = tuple[list[JsonValue], list[JsonValue]]


def merge_lists(
    live: list[JsonValue],
    patch: list[JsonValue],
    merge_key: str,
    merge_element: MergeElement,
    *,
    deleting: bool = False,
) -> MergedAndLive:
    """Return the merged list in its final order, and the live list as modified in place."""
    if not live and not patch:
        return live, live
    if element_type(live, patch) is dict:
        return _merge_maps(live, patch, merge_key, merge_element)
    if deleting:
        deleted = Positions(patch)
        return [scalar for scalar in live if deleted.find(scalar) < 0], live
    return _merge_scalars(live, patch, merge_key)


def _merge_scalars(live: list[JsonValue], patch: list[JsonValue], merge_key: str) -> MergedAndLive:
    merged, slots = deduplicate(live + patch)
    # Go decodes a list into an array of 1, 2, 4, 8 … slots; only what fits is modified in place.
    if len(slots) <= 1 << max(len(live) - 1, 0).bit_length():
        live = slots[: len(live)]
    return merge_order(merged, patch, live, merge_key), live


def _merge_maps(
    live: list[JsonValue], patch: list[JsonValue], merge_key: str, merge_element: MergeElement
) -> MergedAndLive:
    if not merge_key:
        raise PatchError("a list of objects cannot be merged without a merge key")
    remaining, replace = _apply_directives(live, patch, merge_key)
    changes = [element for element in patch if not has_directive(element)]
    if replace:
        return merge_order(changes, [], changes, merge_key), remaining
    merged = _merge_elements(remaining, changes, merge_key, merge_element)
    # Added elements reuse the slots of deleted ones, so these are visible in the live list.
    return merge_order(merged, changes, remaining, merge_key), merged[: len(live)]


def _apply_directives(
    live: list[JsonValue], patch: list[JsonValue], merge_key: str
) -> tuple[list[JsonValue], bool]:
    """Return the live list without deleted elements, and whether the patch replaces all of it."""
    deleted, replace = Positions(()), False
    for element in patch:
        if not isinstance(element, dict) or DIRECTIVE not in element:
            continue
        if element[DIRECTIVE] == REPLACE:
            replace = True
        elif element[DIRECTIVE] == DELETE:
            deleted.append(merge_key_value(element, merge_key))
        else:
            raise PatchError(f"{DIRECTIVE} of an element must be delete or replace in {element!r}")
    return [element for element in live if not _has_key(element, merge_key, deleted)], replace


def _has_key(element: JsonValue, merge_key: str, keys: Positions) -> bool:
    if not isinstance(element, dict) or merge_key not in element:
        return False
    return keys.find(element[merge_key]) >= 0


def _positions(elements: list[JsonValue], merge_key: str) -> Positions:
    maps = (element for element in elements if isinstance(element, dict))
    return Positions(element.get(merge_key, ABSENT) for element in maps)


def _merge_elements(
    live: list[JsonValue], changes: list[JsonValue], merge_key: str, merge_element: MergeElement
) -> list[JsonValue]:
    merged, positions = list(live), _positions(live, merge_key)
    for change in changes:
        value = merge_key_value(change, merge_key)
        at = positions.find(value)
        if at < 0:
            merged.append(change)
            positions.append(value)
            continue
        old = merged[at]
        if isinstance(old, dict) and isinstance(change, dict):
            merged[at] = merge_element(old, change)
    return merged


_PARALLEL_LISTS = (SET_ORDER, DELETE_FROM_LIST)


def apply_patch(original: Document, patch: Document, schema: Schema) -> Document:
    """Return `original` with a strategic merge patch applied."""
    if DIRECTIVE in patch:
        return _without_replace_directive(patch)
    result, changes = dict(original), dict(patch)
    _apply_retain_keys(result, changes)
    for key in [key for key in changes if key.startswith(SET_ORDER)]:
        _merge_ordered_list(key, result, changes, schema)
    for key, value in changes.items():
        _merge_field(key, value, result, schema)
    return result


def _without_replace_directive(patch: Document) -> Document:
    if patch[DIRECTIVE] == REPLACE:
        return {key: value for key, value in patch.items() if key != DIRECTIVE}
    if patch[DIRECTIVE] == DELETE:
        return {}
    raise PatchError(
        f"{DIRECTIVE} of an object must be replace or delete, not {patch[DIRECTIVE]!r}"
    )


def _apply_retain_keys(result: Document, changes: Document) -> None:
    """Apply $retainKeys: remove the keys that it does not list from the result."""
    if RETAIN_KEYS not in changes:
        return
    retained = changes.pop(RETAIN_KEYS)
    if not isinstance(retained, list):
        raise PatchFormatError(f"{RETAIN_KEYS} must be a list, got {retained!r}")
    names = {element_identity(name, "") for name in retained}
    for key, value in changes.items():
        if value is not None and key not in names and not key.startswith(_PARALLEL_LISTS):
            raise PatchFormatError(f"{RETAIN_KEYS} must list {key!r}, which the patch sets")
    for key in result.keys() - names:
        del result[key]


def _merge_field(key: str, value: JsonValue, result: Document, schema: Schema) -> None:
    deleting = key.startswith(DELETE_FROM_LIST)
    if deleting:
        key = _list_name(key, DELETE_FROM_LIST)
    old = result.get(key, ABSENT)
    if value is None:
        result.pop(key, None)
    elif old is ABSENT or type(old) is not type(value):
        if not deleting:
            _put(key, _strip_directives(value, nulls=False), result)
    elif isinstance(value, dict) and isinstance(old, dict):
        result[key] = apply_patch(old, value, schema.field(key).schema)
    elif isinstance(value, list) and isinstance(old, list):
        result[key] = _merge_list_field(key, old, value, schema, deleting=deleting)
    else:
        result[key] = value


def _list_name(key: str, prefix: str) -> str:
    directive, slash, name = key.partition("/")
    if directive != prefix or not slash:
        raise PatchFormatError(f"{key!r} must be {prefix}/ and the name of a list")
    return name


def _put(key: str, value: JsonValue | Absent, result: Document) -> None:
    if value is ABSENT:
        result.pop(key, None)
    else:
        result[key] = value


def _strip_directives(value: JsonValue, *, nulls: bool) -> JsonValue | Absent:
    """Return what a patch adds: without directives and, unless `nulls`, without null fields."""
    if isinstance(value, list):
        return _strip_list_directives(value, nulls=nulls)
    if isinstance(value, dict):
        fields = {key: item for key, item in value.items() if nulls or item is not None}
        if DIRECTIVE in fields:
            return ABSENT
        contents = ((key, _strip_directives(item, nulls=nulls)) for key, item in fields.items())
        return {key: item for key, item in contents if item is not ABSENT}
    return value


def _strip_list_directives(elements: list[JsonValue], *, nulls: bool) -> list[JsonValue]:
    contents = (_strip_directives(element, nulls=nulls) for element in elements)
    return [element for element in contents if element is not ABSENT]


def _merge_list_field(
    key: str, old: list[JsonValue], value: list[JsonValue], schema: Schema, *, deleting: bool
) -> list[JsonValue]:
    element, field = schema.list_field(key)
    if not field.merge and not deleting:
        return value
    merge = partial(apply_patch, schema=element)
    return merge_lists(old, value, field.merge_key, merge, deleting=deleting)[0]


def _merge_ordered_list(key: str, result: Document, changes: Document, schema: Schema) -> None:
    """Apply $setElementOrder together with the changes of the patch to the same list."""
    order = changes.pop(key)
    if not isinstance(order, list):
        raise PatchError(f"{key} must be a list, got {order!r}")
    name = _list_name(key, SET_ORDER)
    live, patch = _list_at(name, result), _list_at(name, changes)
    element, field = schema.list_field(name)
    check_element_order(patch or [], order, field.merge_key)
    if live is None and patch is None:
        return
    merged, live = _merge_list(live, patch, element, field)
    result[name] = merge_order(merged, order, live, field.merge_key)
    element_type(live, patch or [])  # upstream rejects a list without elements
    changes.pop(name, None)


def _list_at(name: str, document: Document) -> list[JsonValue] | None:
    elements = document.get(name, ABSENT)
    if elements is ABSENT:
        return None
    if not isinstance(elements, list):
        raise PatchError(f"{name!r} must be a list to be ordered, got {elements!r}")
    return elements


def _merge_list(
    live: list[JsonValue] | None, patch: list[JsonValue] | None, element: Schema, field: Field
) -> tuple[list[JsonValue], list[JsonValue]]:
    """Return the merged elements, and the live list that determines their order."""
    if live is None:
        return _strip_list_directives(patch or [], nulls=True), []
    if patch is None:
        return live, live
    if not field.merge:
        return patch, live
    return merge_lists(live, patch, field.merge_key, partial(apply_patch, schema=element))
