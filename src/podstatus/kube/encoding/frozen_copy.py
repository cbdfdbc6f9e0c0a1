"""Take over a value that somebody else made: all of it checked, nothing of it shared.

Python does not check what a struct is made of, and maps can be changed by whoever has them.
So a value is walked through once when it comes in: by straight-line code if it is a usual one,
else field by field, which also tells where something does not belong.
"""

import types
import typing
from collections.abc import Callable
from functools import cache
from itertools import chain
from operator import is_
from typing import Any, TypeVar, cast

from msgspec import structs

from podstatus.kube.encoding.frozen_copy_codegen import UnusualError, taker
from podstatus.kube.encoding.wire import FrozenMap, Wire
from podstatus.kube.scalars.quantity import Quantity, QuantityError

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
        found = "None" if value is None else type(value).__name__
        advice = "; decode it first" if isinstance(value, bytes | str | dict) else ""
        raise TypeError(f"expected a {kind.__name__}, got {found}{advice}")


def detached(value: W) -> W:
    """The value with its types checked, its maps frozen copies and its lists tuples.

    Raises FieldError for a wrong type and QuantityError for an unreadable quantity.
    """
    try:
        return cast(W, taker(type(value))(value))
    except UnusualError:
        return _walked(value)


def _walked(value: W) -> W:
    changes = {}
    for name, accepted in _fields(type(value)):
        item = getattr(value, name)
        try:
            taken = _taken(item, accepted)
        except FieldError as error:
            raise error.below(name) from None
        if taken is not item:
            changes[name] = taken
    return structs.replace(value, **changes)


def _taken(item: Any, accepted: "_Accepted") -> Any:
    detach = accepted[type(item)]
    return item if detach is None else detach(item)


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


@cache
def _fields(kind: type[Wire]) -> tuple[tuple[str, _Accepted], ...]:
    return tuple((name, _accepted(hint)) for name, hint in typing.get_type_hints(kind).items())


def _accepted(declared: Any) -> _Accepted:
    origin = typing.get_origin(declared)
    if origin in (typing.Union, types.UnionType):
        union = [_accepted(argument).items() for argument in typing.get_args(declared)]
        return _Accepted(chain.from_iterable(union))
    if origin is tuple:
        detach = _list_detacher(_accepted(typing.get_args(declared)[0]))
        return _Accepted({tuple: detach, list: detach})
    if origin is dict:
        return _Accepted({FrozenMap: None, dict: _map_detacher(typing.get_args(declared)[1])})
    if isinstance(declared, type) and issubclass(declared, Wire):
        return _Accepted({declared: detached})
    return _Anything() if declared is Any else _Accepted({declared: None})


def _list_detacher(accepted: _Accepted) -> Detach:
    def detach_list(items: Any) -> Any:
        taken: list[Any] = []
        try:
            for item in items:
                taken.append(_taken(item, accepted))  # noqa: PERF401 - its length says where we are
        except FieldError as error:
            raise error.below(f"[{len(taken)}]") from None
        same = type(items) is tuple and all(map(is_, taken, items))
        return items if same else tuple(taken)

    return detach_list


def _map_detacher(element: Any) -> Detach:
    accepted = _accepted(element)

    def take(key: object, item: Any) -> Any:
        try:
            return _taken(item, accepted)
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
