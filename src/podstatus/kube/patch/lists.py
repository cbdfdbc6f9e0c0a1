"""Lists in patches: directives, identity of elements, and order of the result.

The order is that of the patch first, then that of the live list for all other elements.

Upstream: sliceElementType, mergeKeyValueEqual, deduplicateScalars, normalizeElementOrder,
mergeSortedSlice and validatePatchWithSetOrderList, strategicpatch/patch.go v0.36.4.
"""

from collections import deque
from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import chain
from operator import itemgetter
from typing import Final, cast

from podstatus.kube.encoding.go_json import Absent, Document, JsonValue
from podstatus.kube.patch.errors import NestedListError, PatchError

DIRECTIVE: Final = "$patch"
DELETE: Final = "delete"
REPLACE: Final = "replace"
RETAIN_KEYS: Final = "$retainKeys"
SET_ORDER: Final = "$setElementOrder"
DELETE_FROM_LIST: Final = "$deleteFromPrimitiveList"


_MAPS: Final = {dict}


def has_directive(element: JsonValue) -> bool:
    """Return whether the element is a directive rather than content."""
    return isinstance(element, dict) and DIRECTIVE in element


def is_deletion(element: JsonValue) -> bool:
    """Return whether the element is a directive to delete another element."""
    return isinstance(element, dict) and element.get(DIRECTIVE) == DELETE


def element_type(*lists: list[JsonValue]) -> type:
    """Return the type that all elements share. Raises PatchError if they differ."""
    if set(map(type, chain(*lists))) == _MAPS:
        return dict
    types = list(map(type, chain(*lists)))
    if types and types[0] is list:
        raise NestedListError("lists of lists cannot be merged")
    if len(set(types)) != 1 or types[0] is type(None):
        names = ", ".join(sorted({kind.__name__ for kind in types})) or "no elements"
        raise PatchError(f"only lists with elements of one type can be merged; got {names}")
    return types[0]


def merge_key_value(element: JsonValue, merge_key: str) -> JsonValue:
    """Return the value of the merge key, which identifies an element. Raises PatchError."""
    if not isinstance(element, dict):
        raise PatchError(f"an element must be an object with {merge_key!r}, got {element!r}")
    if merge_key not in element:
        raise PatchError(f"the merge key {merge_key!r} is missing from {element!r}")
    return element[merge_key]


def merge_key_values(elements: list[JsonValue], merge_key: str) -> list[JsonValue]:
    try:
        return [element[merge_key] for element in cast(list[Document], elements)]
    except KeyError:
        return [merge_key_value(element, merge_key) for element in elements]


def element_identity(element: JsonValue, merge_key: str) -> JsonValue:
    """Return the identity of an element: its merge key value, or the scalar itself."""
    if merge_key:
        return merge_key_value(element, merge_key)
    if isinstance(element, dict | list):
        raise PatchError(f"a list without a merge key must have scalars, got {element!r}")
    return element


def same_scalar(left: JsonValue, right: JsonValue) -> bool:
    """Return whether two scalars are equal. Raises PatchError for objects, where Go panics."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict | list):
        raise not_scalar_error(left)
    return left == right


def not_scalar_error(value: JsonValue) -> PatchError:
    """Return the error for a comparison of objects or lists."""
    return PatchError(f"only a scalar can identify an element, got {value!r}")


def deduplicate(scalars: list[JsonValue]) -> tuple[list[JsonValue], list[JsonValue]]:
    """Remove repeated scalars; return the result, and the list as modified in place.

    As upstream does it, each repetition is overwritten by the last element. The second list is what
    a caller sees that still holds the original slice.
    """
    slots, end, at = list(scalars), len(scalars), 0
    # Positions of each scalar, as a heap; positions that were overwritten meanwhile are skipped.
    positions: dict[JsonValue, list[int]] = {}
    for position, scalar in enumerate(slots):
        positions.setdefault(scalar, []).append(position)
    while at < end:
        scalar = slots[at]
        repeated = positions[scalar]
        while repeated:
            position = heappop(repeated)
            if not at < position < end or slots[position] != scalar:
                continue
            end -= 1
            slots[position] = slots[end]
            heappush(positions[slots[end]], position)
        at += 1
    return slots[:end], slots


_MAX_INSERTIONS: Final = 20
"""Length up to which Go uses insertion sort; the order of longer lists may differ from Go's."""


class Positions:
    """The first position of each identity in a list; lookups take constant time."""

    def __init__(self, identities: Iterable[JsonValue | Absent]) -> None:
        self._texts: dict[str, int] = {}
        self._others: dict[tuple[type, JsonValue], int] = {}
        """Other scalars by type and value, since True, 1 and 1.0 are equal in Python."""
        self._not_scalar: set[type] = set()
        self._size = 0
        for value in identities:
            self.append(value)

    def append(self, value: JsonValue | Absent) -> None:
        """Add the identity of the next element; ABSENT takes a position that is never found."""
        if isinstance(value, str):
            self._texts.setdefault(value, self._size)
        elif isinstance(value, dict | list):
            self._not_scalar.add(type(value))
        elif not isinstance(value, Absent):
            self._others.setdefault((type(value), value), self._size)
        self._size += 1

    def find(self, value: JsonValue) -> int:
        """Return the position, or -1. Raises PatchError if objects or lists would be compared."""
        if isinstance(value, str):
            return self._texts.get(value, -1)
        if isinstance(value, dict | list):
            if type(value) in self._not_scalar:
                raise not_scalar_error(value)
            return -1
        return self._others.get((type(value), value), -1)


def merge_order(
    merged: list[JsonValue], order: list[JsonValue], live: list[JsonValue], merge_key: str
) -> list[JsonValue]:
    """Return merged elements in their final order: first by their position in `order`.

    Elements that are not in `order` keep the order of the live list, each before the first ordered
    element that follows it there.
    """
    wish = Positions(element_identity(element, merge_key) for element in order)
    named: list[JsonValue] = []
    others: list[JsonValue] = []
    for element in merged:
        at = wish.find(element_identity(element, merge_key))
        (others if at < 0 else named).append(element)
    custom = Positions(element_identity(element, merge_key) for element in live)
    named, others = sort_by_order(named, wish, merge_key), sort_by_order(others, custom, merge_key)
    return _interleave(named, others, custom, merge_key)


def sort_by_order(elements: list[JsonValue], order: Positions, merge_key: str) -> list[JsonValue]:
    """Return the elements sorted by position, deletions last."""
    deletions = [element for element in elements if merge_key and is_deletion(element)]
    remaining = [element for element in elements if not merge_key or not is_deletion(element)]
    if len(remaining) > 1:
        remaining = _sort_by_position(
            [(order.find(element_identity(item, merge_key)), item) for item in remaining]
        )
    return remaining + deletions


def _sort_by_position(with_positions: list[tuple[int, JsonValue]]) -> list[JsonValue]:
    if min(position for position, _ in with_positions) >= 0:
        return [element for _, element in sorted(with_positions, key=itemgetter(0))]
    if len(with_positions) > _MAX_INSERTIONS:
        return [element for _, element in sorted(with_positions, key=itemgetter(0))]
    # Upstream's comparison returns "less" whenever either element has no position, so the result
    # is that of its insertion sort, which Go uses up to this length.
    for end in range(1, len(with_positions)):
        at = end
        while at and _comes_before(with_positions[at][0], with_positions[at - 1][0]):
            with_positions[at - 1], with_positions[at] = with_positions[at], with_positions[at - 1]
            at -= 1
    return [element for _, element in with_positions]


def _comes_before(position: int, other: int) -> bool:
    return position < 0 or other < 0 or position < other


def _interleave(
    named: list[JsonValue], others: list[JsonValue], live: Positions, merge_key: str
) -> list[JsonValue]:
    if not named or not others:
        return named + others
    result: list[JsonValue] = []
    waiting = deque(
        (live.find(element_identity(element, merge_key)), element) for element in others
    )
    for element in named:
        position = live.find(element_identity(element, merge_key))
        while waiting and 0 <= waiting[0][0] < position:
            result.append(waiting.popleft()[1])
        result.append(element)
    return result + [element for _, element in waiting]


def check_element_order(patch: list[JsonValue], order: list[JsonValue], merge_key: str) -> None:
    """Raise PatchError unless the order lists all elements of the patch, in the same order."""
    if not patch or not order:
        return
    pending = deque(element for element in patch if not merge_key or not is_deletion(element))
    names = deque(order)
    while pending and names:
        if has_directive(pending[0]) or _same_element(pending[0], names.popleft(), merge_key):
            pending.popleft()
    if pending:
        raise PatchError(f"{SET_ORDER} does not list {pending[0]!r}, or in another position")


def _same_element(left: JsonValue, right: JsonValue, merge_key: str) -> bool:
    if not merge_key:
        return same_scalar(left, right)
    return same_scalar(merge_key_value(left, merge_key), merge_key_value(right, merge_key))
