"""A document with a patch applied to it.

Upstream: StrategicMergePatch and mergeMap, strategicpatch/patch.go v0.36.4. Upstream takes the
keys of a patch in the random order of a Go map; here they are taken as the patch has them.
"""

from functools import partial

from podstatus.kube.documents import ABSENT, Absent, Document, JsonValue
from podstatus.kube.patch_errors import PatchError, PatchFormatError
from podstatus.kube.patch_lists import (
    DELETE,
    DELETE_FROM_LIST,
    MARKER,
    REPLACE,
    RETAIN_KEYS,
    SET_ORDER,
    element_type,
    identity,
)
from podstatus.kube.patch_merge import merge_lists
from podstatus.kube.patch_order import arranged, check_order
from podstatus.kube.schemas import Field, Schema

_PARALLEL_LISTS = (SET_ORDER, DELETE_FROM_LIST)


def apply_patch(original: Document, patch: Document, schema: Schema) -> Document:
    """The document that a strategic merge patch makes of `original`."""
    if MARKER in patch:
        return _replaced(patch)
    result, changes = dict(original), dict(patch)
    _retain_keys(result, changes)
    for key in [key for key in changes if key.startswith(SET_ORDER)]:
        _merge_ordered_list(key, result, changes, schema)
    for key, value in changes.items():
        _merge_field(key, value, result, schema)
    return result


def _replaced(patch: Document) -> Document:
    if patch[MARKER] == REPLACE:
        return {key: value for key, value in patch.items() if key != MARKER}
    if patch[MARKER] == DELETE:
        return {}
    raise PatchError(f"{MARKER} of an object must be replace or delete, not {patch[MARKER]!r}")


def _retain_keys(result: Document, changes: Document) -> None:
    """Obey $retainKeys: what it does not name leaves the result."""
    if RETAIN_KEYS not in changes:
        return
    retained = changes.pop(RETAIN_KEYS)
    if not isinstance(retained, list):
        raise PatchFormatError(f"{RETAIN_KEYS} must be a list, found {retained!r}")
    names = {identity(name, "") for name in retained}
    for key, value in changes.items():
        if value is not None and key not in names and not key.startswith(_PARALLEL_LISTS):
            raise PatchFormatError(f"{RETAIN_KEYS} must name {key!r}, which the patch sets")
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
            _put(key, _content(value, nulls=False), result)
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


def _content(value: JsonValue, *, nulls: bool) -> JsonValue | Absent:
    """What a patch adds: without whatever carries a marker, and unless kept, null fields."""
    if isinstance(value, list):
        return _list_content(value, nulls=nulls)
    if isinstance(value, dict):
        fields = {key: item for key, item in value.items() if nulls or item is not None}
        if MARKER in fields:
            return ABSENT
        contents = ((key, _content(item, nulls=nulls)) for key, item in fields.items())
        return {key: item for key, item in contents if item is not ABSENT}
    return value


def _list_content(elements: list[JsonValue], *, nulls: bool) -> list[JsonValue]:
    contents = (_content(element, nulls=nulls) for element in elements)
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
    """Obey $setElementOrder, and with it what the patch holds for the same list."""
    order = changes.pop(key)
    if not isinstance(order, list):
        raise PatchError(f"{key} must be a list, found {order!r}")
    name = _list_name(key, SET_ORDER)
    live, patch = _list_at(name, result), _list_at(name, changes)
    element, field = schema.list_field(name)
    check_order(patch or [], order, field.merge_key)
    if live is None and patch is None:
        return
    merged, live = _merged_and_live(live, patch, element, field)
    result[name] = arranged(merged, order, live, field.merge_key)
    element_type(live, patch or [])  # upstream orders no list without elements
    changes.pop(name, None)


def _list_at(name: str, document: Document) -> list[JsonValue] | None:
    found = document.get(name, ABSENT)
    if found is ABSENT:
        return None
    if not isinstance(found, list):
        raise PatchError(f"{name!r} must be a list to be put in order, found {found!r}")
    return found


def _merged_and_live(
    live: list[JsonValue] | None, patch: list[JsonValue] | None, element: Schema, field: Field
) -> tuple[list[JsonValue], list[JsonValue]]:
    """The list's new elements, and the live list as it is looked at when they are ordered."""
    if live is None:
        return _list_content(patch or [], nulls=True), []
    if patch is None:
        return live, live
    if not field.merge:
        return patch, live
    return merge_lists(live, patch, field.merge_key, partial(apply_patch, schema=element))
