"""Create the strategic merge patch between two documents.

Upstream: CreateTwoWayMergePatch and diffMaps, strategicpatch/patch.go v0.36.4.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import TypeAlias

from podstatus.kube.encoding.go_json import ABSENT, Document, JsonValue, go_equal, go_format_v
from podstatus.kube.patch.errors import PatchError
from podstatus.kube.patch.lists import (
    DELETE,
    DELETE_FROM_LIST,
    DIRECTIVE,
    RETAIN_KEYS,
    SET_ORDER,
    Positions,
    deduplicate,
    element_type,
    is_deletion,
    merge_key_values,
    same_scalar,
    sort_by_order,
)
from podstatus.kube.patch.schema import Field, Schema

_TEXTS = {str}


def create_two_way_patch(original: Document, modified: Document, schema: Schema) -> Document:
    """Return the strategic merge patch from `original` to `modified`."""
    return _diff_maps(original, modified, schema, retain_keys=False)


def _diff_maps(
    original: Document, modified: Document, schema: Schema, *, retain_keys: bool
) -> Document:
    _check_directives(original, modified)
    patch: Document = {}
    shared = 0
    for key, new in modified.items():
        old = original.get(key, ABSENT)
        if old is ABSENT:
            patch[key] = new
            continue
        shared += 1
        if isinstance(new, dict) and isinstance(old, dict):
            patch |= _diff_map_field(key, old, new, schema)
        elif isinstance(new, list) and isinstance(old, list):
            patch |= _diff_list_field(key, old, new, schema)
        elif old != new or type(old) is not type(new):
            patch[key] = new
    if shared < len(original):
        patch |= {key: None for key in original if key not in modified}
    if retain_keys and patch:
        patch |= _retain_keys_directive(modified)
    return patch


def _check_directives(original: Document, modified: Document) -> None:
    if DIRECTIVE in original and DIRECTIVE in modified:
        for marker in (original[DIRECTIVE], modified[DIRECTIVE]):
            if not isinstance(marker, str):
                raise PatchError(f"{DIRECTIVE} must be a string, got {marker!r}")


def _retain_keys_directive(modified: Document) -> Document:
    retained: list[JsonValue] = [*sorted(key for key in modified if modified[key] is not None)]
    return {RETAIN_KEYS: retained} if retained else {}


def _diff_map_field(key: str, old: Document, new: Document, schema: Schema) -> Document:
    try:
        field = schema.field(key)
    except PatchError:
        if go_equal(old, new):
            return {}
        raise
    patch = _diff_maps(old, new, field.schema, retain_keys=field.retain_keys)
    return {key: patch} if patch else {}


def _diff_list_field(
    key: str, old: list[JsonValue], new: list[JsonValue], schema: Schema
) -> Document:
    try:
        element, field = schema.list_field(key)
    except PatchError:
        if go_equal(old, new):
            return {}
        raise
    if not field.merge:
        return {} if go_equal(old, new) else {key: new}
    if not old:
        return {key: new} if new else {}
    if element_type(old, new) is dict:
        return _diff_lists_of_maps(key, old, new, element, field)
    return _diff_lists_of_scalars(key, old, new)


def _list_patch(
    key: str, changes: list[JsonValue], deletions: list[JsonValue], order: list[JsonValue]
) -> Document:
    parts = {key: changes, f"{DELETE_FROM_LIST}/{key}": deletions, f"{SET_ORDER}/{key}": order}
    return {name: part for name, part in parts.items() if part}


def _diff_lists_of_maps(
    key: str, old: list[JsonValue], new: list[JsonValue], schema: Schema, field: Field
) -> Document:
    merge_key = field.merge_key
    old_keys, new_keys = merge_key_values(old, merge_key), merge_key_values(new, merge_key)
    order: list[JsonValue] = [{merge_key: value} for value in new_keys]
    if old_keys == new_keys and _are_distinct_strings(new_keys):
        changes = _diff_pairs(zip(_maps(old), _maps(new), strict=True), schema, field)
        if len(changes) > 1:
            changes.sort(key=is_deletion)
        return _list_patch(key, changes, [], order) if changes else {}
    changes, deletions = _diff_stacks(_stack(old_keys, old), _stack(new_keys, new), schema, field)
    same_order = len(old) == len(new) and all(map(same_scalar, old_keys, new_keys))
    if same_order and not changes and not deletions:
        return {}
    if len(changes) > 1:
        changes = sort_by_order(changes, Positions(new_keys), merge_key)
    return _list_patch(key, changes + deletions, [], order)


def _are_distinct_strings(keys: list[JsonValue]) -> bool:
    """Return whether all keys are distinct strings; such lists need no sorting."""
    return set(map(type, keys)) == _TEXTS and len(set(keys)) == len(keys)


def _maps(elements: list[JsonValue]) -> Iterator[Document]:
    return (element for element in elements if isinstance(element, dict))


def _diff_pairs(
    pairs: Iterable[tuple[Document, Document]], schema: Schema, field: Field
) -> list[JsonValue]:
    """Return the changes of elements with the same merge key."""
    merge_key = field.merge_key
    changes: list[JsonValue] = []
    for old, new in pairs:
        if old is new:
            continue
        patch = _diff_maps(old, new, schema, retain_keys=field.retain_keys)
        if patch:
            changes.append(patch | {merge_key: new[merge_key]})
    return changes


_Stack: TypeAlias = list[tuple[str, Document]]


def _stack(keys: list[JsonValue], elements: list[JsonValue]) -> _Stack:
    """Return the elements with the text of their merge key, the smallest on top.

    Of equal keys, the last is on top, since upstream's sort reverses them (the order of lists of
    more than 12 elements with repeated keys is not reproduced).
    """
    named = zip(map(go_format_v, keys), _maps(elements), strict=True)
    return sorted(named, key=itemgetter(0), reverse=True)


def _diff_stacks(
    old: _Stack, new: _Stack, schema: Schema, field: Field
) -> tuple[list[JsonValue], list[JsonValue]]:
    """Walk two lists in the order of their keys; return additions and changes, and deletions."""
    merge_key = field.merge_key
    changes: list[JsonValue] = []
    deletions: list[JsonValue] = []
    while old or new:
        if not new or (old and old[-1][0] < new[-1][0]):
            deletions.append({merge_key: old.pop()[1][merge_key], DIRECTIVE: DELETE})
        elif not old or old[-1][0] > new[-1][0]:
            changes.append(new.pop()[1])
        else:
            changes += _diff_pairs([(old.pop()[1], new.pop()[1])], schema, field)
    return changes, deletions


def _diff_lists_of_scalars(key: str, old: list[JsonValue], new: list[JsonValue]) -> Document:
    old_counts, new_counts = Counter(old), Counter(new)
    additions = sorted((new_counts - old_counts).elements(), key=go_format_v)
    deletions = sorted((old_counts - new_counts).elements(), key=go_format_v)
    # Upstream has sorted the old list here, so an unsorted list never counts as unchanged.
    order = [] if sorted(old, key=go_format_v) == new else new
    additions = sort_by_order(additions, Positions(new), "")
    return _list_patch(key, additions, deduplicate(deletions)[0], order)
