"""The order of lists: the patch's wish first, the live list's order where the patch is silent.

Upstream: normalizeElementOrder, mergeSortedSlice, validatePatchWithSetOrderList,
strategicpatch/patch.go.
"""

from collections import deque
from collections.abc import Iterable
from operator import itemgetter
from typing import Final

from podstatus.kube.documents import Absent, JsonValue
from podstatus.kube.patch_errors import PatchError
from podstatus.kube.patch_lists import (
    SET_ORDER,
    has_marker,
    identity,
    is_deletion,
    merge_key_value,
    not_scalar,
    same_identity,
)

_MAX_INSERTIONS: Final = 20
"""Of a list that Go sorts by insertion; beyond, our order may differ from upstream's."""


class Positions:
    """Where in a list an identity occurs first; each is found in constant time."""

    def __init__(self, identities: Iterable[JsonValue | Absent]) -> None:
        self._texts: dict[str, int] = {}
        self._others: dict[tuple[type, JsonValue], int] = {}
        """Scalars that are no texts, by type and value: Python calls True, 1 and 1.0 equal."""
        self._not_scalar: set[type] = set()
        self._size = 0
        for value in identities:
            self.append(value)

    def append(self, value: JsonValue | Absent) -> None:
        """Note the identity of one more element; ABSENT takes a place that nothing finds."""
        if isinstance(value, str):
            self._texts.setdefault(value, self._size)
        elif isinstance(value, dict | list):
            self._not_scalar.add(type(value))
        elif not isinstance(value, Absent):
            self._others.setdefault((type(value), value), self._size)
        self._size += 1

    def find(self, value: JsonValue) -> int:
        """The position, or -1. Raises PatchError where objects or lists are to be compared."""
        if isinstance(value, str):
            return self._texts.get(value, -1)
        if isinstance(value, dict | list):
            if type(value) in self._not_scalar:
                raise not_scalar(value)
            return -1
        return self._others.get((type(value), value), -1)


def arranged(
    merged: list[JsonValue], order: list[JsonValue], live: list[JsonValue], merge_key: str
) -> list[JsonValue]:
    """Merged elements in their final order: those that `order` names as it names them.

    The others keep the order of the live list, each before the first named element that
    follows it there.
    """
    wish = Positions(identity(element, merge_key) for element in order)
    named: list[JsonValue] = []
    others: list[JsonValue] = []
    for element in merged:
        at = wish.find(identity(element, merge_key))
        (others if at < 0 else named).append(element)
    custom = Positions(identity(element, merge_key) for element in live)
    named, others = in_order(named, wish, merge_key), in_order(others, custom, merge_key)
    return _interleaved(named, others, custom, merge_key)


def in_order(elements: list[JsonValue], order: Positions, merge_key: str) -> list[JsonValue]:
    """The elements by their positions, deletions last."""
    deletions = [element for element in elements if merge_key and is_deletion(element)]
    kept = [element for element in elements if not merge_key or not is_deletion(element)]
    if len(kept) > 1:
        kept = _by_place([(order.find(identity(item, merge_key)), item) for item in kept])
    return kept + deletions


def _by_place(placed: list[tuple[int, JsonValue]]) -> list[JsonValue]:
    if min(place for place, _ in placed) >= 0:
        return [element for _, element in sorted(placed, key=itemgetter(0))]
    if len(placed) > _MAX_INSERTIONS:
        return [element for _, element in sorted(placed, key=itemgetter(0))]
    # Upstream's comparison says "less" whenever either element has no place, so the outcome is
    # what its sort makes of that: insertion, up to so many elements.
    for end in range(1, len(placed)):
        at = end
        while at and _goes_first(placed[at][0], placed[at - 1][0]):
            placed[at - 1], placed[at] = placed[at], placed[at - 1]
            at -= 1
    return [element for _, element in placed]


def _goes_first(place: int, other: int) -> bool:
    return place < 0 or other < 0 or place < other


def _interleaved(
    named: list[JsonValue], others: list[JsonValue], live: Positions, merge_key: str
) -> list[JsonValue]:
    if not named or not others:
        return named + others
    result: list[JsonValue] = []
    waiting = deque((live.find(identity(element, merge_key)), element) for element in others)
    for element in named:
        place = live.find(identity(element, merge_key))
        while waiting and 0 <= waiting[0][0] < place:
            result.append(waiting.popleft()[1])
        result.append(element)
    return result + [element for _, element in waiting]


def check_order(patch: list[JsonValue], order: list[JsonValue], merge_key: str) -> None:
    """Raise unless the order directive names all that the patch holds, in the same order."""
    if not patch or not order:
        return
    pending = deque(element for element in patch if not merge_key or not is_deletion(element))
    names = deque(order)
    while pending and names:
        if has_marker(pending[0]) or _same_element(pending[0], names.popleft(), merge_key):
            pending.popleft()
    if pending:
        raise PatchError(f"{SET_ORDER} lacks {pending[0]!r}, or has it in another place")


def _same_element(left: JsonValue, right: JsonValue, merge_key: str) -> bool:
    if not merge_key:
        return same_identity(left, right)
    return same_identity(merge_key_value(left, merge_key), merge_key_value(right, merge_key))
