"""Lists in patches: the words of the directives, and what elements are told apart by.

Upstream: sliceElementType, mergeKeyValueEqual, deduplicateScalars, strategicpatch/patch.go.
"""

from heapq import heappop, heappush
from itertools import chain
from typing import Final, cast

from podstatus.kube.documents import Document, JsonValue
from podstatus.kube.patch_errors import NestedListError, PatchError

MARKER: Final = "$patch"
DELETE: Final = "delete"
REPLACE: Final = "replace"
RETAIN_KEYS: Final = "$retainKeys"
SET_ORDER: Final = "$setElementOrder"
DELETE_FROM_LIST: Final = "$deleteFromPrimitiveList"


_MAPS: Final = {dict}


def has_marker(element: JsonValue) -> bool:
    """Whether the element is an instruction rather than content."""
    return isinstance(element, dict) and MARKER in element


def is_deletion(element: JsonValue) -> bool:
    """Whether the element says that another one goes."""
    return isinstance(element, dict) and element.get(MARKER) == DELETE


def element_type(*lists: list[JsonValue]) -> type:
    """The type that all elements share."""
    if set(map(type, chain(*lists))) == _MAPS:
        return dict
    types = list(map(type, chain(*lists)))
    if types and types[0] is list:
        raise NestedListError("lists of lists cannot be merged")
    if len(set(types)) != 1 or types[0] is type(None):
        found = ", ".join(sorted({kind.__name__ for kind in types})) or "no elements"
        raise PatchError(f"only lists with elements of one kind can be merged; found {found}")
    return types[0]


def merge_key_value(element: JsonValue, merge_key: str) -> JsonValue:
    """The value that tells this element of a list from the others."""
    if not isinstance(element, dict):
        raise PatchError(f"an element must be an object with {merge_key!r}, found {element!r}")
    if merge_key not in element:
        raise PatchError(f"the merge key {merge_key!r} is missing from {element!r}")
    return element[merge_key]


def merge_key_values(elements: list[JsonValue], merge_key: str) -> list[JsonValue]:
    """The same of each element of a list of maps."""
    try:
        return [element[merge_key] for element in cast(list[Document], elements)]
    except KeyError:
        return [merge_key_value(element, merge_key) for element in elements]


def identity(element: JsonValue, merge_key: str) -> JsonValue:
    """What an element is found by: its merge key, or the scalar itself."""
    if merge_key:
        return merge_key_value(element, merge_key)
    if isinstance(element, dict | list):
        raise PatchError(f"a list without merge key must hold scalars, found {element!r}")
    return element


def same_identity(left: JsonValue, right: JsonValue) -> bool:
    """Whether two scalars are equal; Go panics when it has to compare objects or lists so."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict | list):
        raise not_scalar(left)
    return left == right


def not_scalar(value: JsonValue) -> PatchError:
    """Why two objects or lists are not compared."""
    return PatchError(f"only a scalar can tell elements apart, found {value!r}")


def deduplicated(scalars: list[JsonValue]) -> tuple[list[JsonValue], list[JsonValue]]:
    """Each scalar once, the last one moving into the place of a repetition; and all the slots.

    The slots are what someone sees who still looks at the list as it was, changed in place.
    """
    slots, end, at = list(scalars), len(scalars), 0
    # The places of each scalar, smallest first; those that hold another one by now are passed over.
    places: dict[JsonValue, list[int]] = {}
    for place, scalar in enumerate(slots):
        places.setdefault(scalar, []).append(place)
    while at < end:
        scalar = slots[at]
        repeated = places[scalar]
        while repeated:
            place = heappop(repeated)
            if not at < place < end or slots[place] != scalar:
                continue
            end -= 1
            slots[place] = slots[end]
            heappush(places[slots[end]], place)
        at += 1
    return slots[:end], slots
