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
from typing import Any, TypeVar

from msgspec import structs

from podstatus.kube.quantity import Quantity, QuantityError
from podstatus.kube.wire import FrozenMap, Wire

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
        separator = "" if self.path.startswith("[") else "."
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
        detach = _detach_of(name, _accepted(hints[name]), type_found)
        if detach is not None:
            descents.append((index, name, detach))
    return tuple(descents)


def _accepted(declared: Any) -> dict[type, Detach | None]:
    """The types that a field may hold, each with what to do about a value of it."""
    origin = typing.get_origin(declared)
    if origin in (typing.Union, types.UnionType):
        return {t: d for arg in typing.get_args(declared) for t, d in _accepted(arg).items()}
    if origin is tuple:
        detach = _list_detacher(typing.get_args(declared)[0])
        return {tuple: detach, list: detach}
    if origin is dict:
        detach = _map_detacher(typing.get_args(declared)[1])
        return {FrozenMap: None, dict: detach}
    if isinstance(declared, type) and issubclass(declared, Wire):
        return {declared: detached}
    return _Anything() if declared is Any else {declared: None}


class _Anything(dict[type, Detach | None]):
    """For fields of any type."""

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: type) -> None:
        return None


def _detach_of(name: str, accepted: dict[type, Detach | None], found: type) -> Detach | None:
    if found in accepted:
        return accepted[found]
    if str in accepted and issubclass(found, str):
        return str.__str__  # a StrEnum, say: what it spells
    raise _refusal(name, accepted, found)


def _list_detacher(element: Any) -> Detach:
    accepted = _accepted(element)

    def detach_list(items: Any) -> Any:
        changed = tuple(_element(index, item, accepted) for index, item in enumerate(items))
        same = type(items) is tuple and all(map(_is, changed, items))
        return items if same else changed

    return detach_list


def _map_detacher(element: Any) -> Detach:
    accepted = _accepted(element)

    def detach_map(items: Any) -> Any:
        if element is Quantity:
            return FrozenMap({str(key): _quantity(key, item) for key, item in items.items()})
        return FrozenMap({str(key): _element(key, item, accepted) for key, item in items.items()})

    return detach_map


def _element(key: object, item: Any, accepted: dict[type, Detach | None]) -> Any:
    detach = _detach_of(f"[{key}]", accepted, type(item))
    if detach is None:
        return item
    try:
        return detach(item)
    except FieldError as error:
        raise error.below(f"[{key}]") from None


def _quantity(key: object, item: object) -> Quantity:
    try:
        return Quantity.parse(item)
    except QuantityError as error:
        raise QuantityError(f"{key}: {error}") from None


def _is(left: object, right: object) -> bool:
    return left is right


def _refusal(name: str, accepted: dict[type, Detach | None], found: type) -> FieldError:
    expected = " or ".join(t.__name__ for t in accepted if t not in (FrozenMap, list))
    expected = expected.replace("NoneType", "None")
    return FieldError(name, f"expected {expected}, got {found.__name__}")
