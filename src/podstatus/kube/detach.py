"""Take over a value that somebody else made: all of it checked, nothing of it shared.

Python does not check what a struct is made of, and maps can be changed by whoever has them.
So a value is walked through once when it comes in. What types its fields have is compared
with what is declared; which types are all right is remembered, so that the usual value
costs one look per struct.
"""

import types
import typing
from collections.abc import Callable
from functools import lru_cache
from itertools import chain
from operator import is_
from typing import Any, TypeVar

from msgspec import structs

from podstatus.kube.quantity import Quantity, QuantityError
from podstatus.kube.wire import FrozenMap, Wire

MOST_AT_ONCE = 16
"""Longer lists are rare, and what types they hold is not worth remembering."""

W = TypeVar("W", bound=Wire)
Detach = Callable[[Any], Any]


class FieldError(TypeError):
    """A field holds what does not belong there; `path` leads to it."""

    def __init__(self, path: str, found: str) -> None:
        super().__init__(f"{path}: {found}")
        self.path = path
        self.found = found

    def below(self, name: str) -> "FieldError":
        """The same error, seen from one level higher."""
        separator = "." if self.path and not self.path.startswith("[") else ""
        return FieldError(f"{name}{separator}{self.path}", self.found)


def check_kind(value: object, kind: type[Wire]) -> None:
    """Raise TypeError unless the value is of this kind."""
    if not isinstance(value, kind):
        found = type(value).__name__
        raise TypeError(f"expected a {kind.__name__}, got {found}; decode it first")


def detached(value: W) -> W:
    """The value with its types checked, its maps frozen copies and its lists tuples.

    Raises FieldError for a wrong type and QuantityError for an unreadable quantity.
    """
    items = structs.astuple(value)
    changes = {}
    for index, name, detach in _descents(type(value), tuple(map(type, items))):
        item = items[index]
        try:
            changed = detach(item)
        except FieldError as error:
            raise error.below(name) from None
        if changed is not item:
            changes[name] = changed
    return structs.replace(value, **changes) if changes else value


# Which fields of a struct are set varies little: this many combinations are plenty.
@lru_cache(maxsize=4096)
def _descents(kind: type[Wire], found: tuple[type, ...]) -> tuple[tuple[int, str, Detach], ...]:
    """Which fields have something below them to detach; FieldError if a type is wrong."""
    hints = typing.get_type_hints(kind)
    descents = []
    for index, (name, type_found) in enumerate(zip(kind.__struct_fields__, found, strict=True)):
        try:
            detach = _accepted(hints[name])[type_found]
        except FieldError as error:
            raise error.below(name) from None
        if detach is not None:
            descents.append((index, name, detach))
    return tuple(descents)


class _Accepted(dict[type, Detach | None]):
    """The types that a value may have, each with what to do about such a value."""

    def __missing__(self, found: type) -> Detach:
        if str in self and issubclass(found, str):
            return str.__str__  # a StrEnum, say: what it spells
        expected = " or ".join(t.__name__ for t in self if t not in (FrozenMap, list))
        expected = expected.replace("NoneType", "None")
        raise FieldError("", f"expected {expected}, got {found.__name__}")


class _Anything(_Accepted):
    """For values of any type."""

    def __missing__(self, found: type) -> Any:
        return None


def _accepted(declared: Any) -> _Accepted:
    origin = typing.get_origin(declared)
    if origin in (typing.Union, types.UnionType):
        union = [_accepted(argument).items() for argument in typing.get_args(declared)]
        return _Accepted(chain.from_iterable(union))
    if origin is tuple:
        detach = _list_detacher(typing.get_args(declared)[0])
        return _Accepted({tuple: detach, list: detach})
    if origin is dict:
        return _Accepted({FrozenMap: None, dict: _map_detacher(typing.get_args(declared)[1])})
    if isinstance(declared, type) and issubclass(declared, Wire):
        return _Accepted({declared: detached})
    return _Anything() if declared is Any else _Accepted({declared: None})


def _list_detacher(element: Any) -> Detach:
    accepted = _accepted(element)
    leaves = isinstance(element, type) and issubclass(element, Wire) and _is_leaf(element)

    def detach_leaves(items: Any) -> Any:
        """One look for all of them: a pod has several conditions."""
        if type(items) is tuple and len(items) <= MOST_AT_ONCE:
            kinds = tuple(map(type, items))
            if kinds.count(element) == len(kinds):
                found = chain.from_iterable(map(structs.astuple, items))
                if _all_plain(element, tuple(map(type, found))):
                    return items
        return detach_list(items)

    def detach_list(items: Any) -> Any:
        taken: list[Any] = []
        try:
            for item in items:
                detach = accepted[type(item)]
                taken.append(item if detach is None else detach(item))
        except FieldError as error:
            raise error.below(f"[{len(taken)}]") from None
        same = type(items) is tuple and all(map(is_, taken, items))
        return items if same else tuple(taken)

    return detach_leaves if leaves else detach_list


def _is_leaf(kind: type[Wire]) -> bool:
    """Whether there is never anything below its fields."""
    accepted = map(_accepted, typing.get_type_hints(kind).values())
    return not any(detach for types_of_field in accepted for detach in types_of_field.values())


@lru_cache(maxsize=1024)
def _all_plain(kind: type[Wire], found: tuple[type, ...]) -> bool:
    """Whether the fields of several structs, one after another, have the types declared."""
    width = len(kind.__struct_fields__)
    try:
        starts = range(0, len(found), width)
        return not any(_descents(kind, found[start : start + width]) for start in starts)
    except FieldError:
        return False


def _map_detacher(element: Any) -> Detach:
    accepted = _accepted(element)

    def take(key: object, item: Any) -> Any:
        try:
            detach = accepted[type(item)]
            return item if detach is None else detach(item)
        except FieldError as error:
            raise error.below(f"[{key}]") from None

    if element is Quantity:
        take = _quantity
    return lambda items: FrozenMap({str(key): take(key, item) for key, item in items.items()})


def _quantity(key: object, item: object) -> Quantity:
    try:
        return Quantity.parse(item)
    except QuantityError as error:
        raise QuantityError(f"{key}: {error}") from None
