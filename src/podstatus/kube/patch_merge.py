"""Two lists merged: the live one and the patch's.

Upstream: mergeSlice, strategicpatch/patch.go. It edits the live list in place while its caller
still looks at it to find the order of the result, so that `merge_lists` also returns the live
list as it is seen afterwards.
"""

from collections.abc import Callable

from podstatus.kube.documents import ABSENT, Document, JsonValue
from podstatus.kube.patch_errors import PatchError
from podstatus.kube.patch_lists import (
    DELETE,
    MARKER,
    REPLACE,
    deduplicated,
    element_type,
    has_marker,
    merge_key_value,
)
from podstatus.kube.patch_order import Positions, arranged

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
    """The merged list in its order, and the live list as seen afterwards."""
    if not live and not patch:
        return live, live
    if element_type(live, patch) is dict:
        return _merge_maps(live, patch, merge_key, merge_element)
    if deleting:
        deleted = Positions(patch)
        return [scalar for scalar in live if deleted.find(scalar) < 0], live
    return _merge_scalars(live, patch, merge_key)


def _merge_scalars(live: list[JsonValue], patch: list[JsonValue], merge_key: str) -> MergedAndLive:
    merged, slots = deduplicated(live + patch)
    # Go decodes a list into an array of 1, 2, 4, 8 … slots; only what fits is changed in place.
    if len(slots) <= 1 << max(len(live) - 1, 0).bit_length():
        live = slots[: len(live)]
    return arranged(merged, patch, live, merge_key), live


def _merge_maps(
    live: list[JsonValue], patch: list[JsonValue], merge_key: str, merge_element: MergeElement
) -> MergedAndLive:
    if not merge_key:
        raise PatchError("a list of objects cannot be merged without a merge key")
    kept, replace = _obey_markers(live, patch, merge_key)
    changes = [element for element in patch if not has_marker(element)]
    if replace:
        return arranged(changes, [], changes, merge_key), kept
    merged = _merge_elements(kept, changes, merge_key, merge_element)
    # Added elements fill the slots of deleted ones first: so many are seen in the live list.
    return arranged(merged, changes, kept, merge_key), merged[: len(live)]


def _obey_markers(
    live: list[JsonValue], patch: list[JsonValue], merge_key: str
) -> tuple[list[JsonValue], bool]:
    """What deletions leave of the live list, and whether the patch replaces it altogether."""
    deleted, replace = Positions(()), False
    for element in patch:
        if not isinstance(element, dict) or MARKER not in element:
            continue
        if element[MARKER] == REPLACE:
            replace = True
        elif element[MARKER] == DELETE:
            deleted.append(merge_key_value(element, merge_key))
        else:
            raise PatchError(f"{MARKER} of an element must be delete or replace in {element!r}")
    return [element for element in live if not _has_key(element, merge_key, deleted)], replace


def _has_key(element: JsonValue, merge_key: str, keys: Positions) -> bool:
    if not isinstance(element, dict) or merge_key not in element:
        return False
    return keys.find(element[merge_key]) >= 0


def _positions(elements: list[JsonValue], merge_key: str) -> Positions:
    maps = (element for element in elements if isinstance(element, dict))
    return Positions(element.get(merge_key, ABSENT) for element in maps)


def _merge_elements(
    kept: list[JsonValue], changes: list[JsonValue], merge_key: str, merge_element: MergeElement
) -> list[JsonValue]:
    merged, positions = list(kept), _positions(kept, merge_key)
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
