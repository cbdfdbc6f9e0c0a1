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

from podstatus.kube.encoding.frozen_copy_codegen import UnusualError, compiled_copier
from podstatus.kube.encoding.wire import FrozenMap, Wire
from podstatus.kube.scalars.quantity import Quantity, QuantityError

W = TypeVar("W", bound=Wire)
CopyFunction = Callable[[Any], Any]


class FieldTypeError(TypeError):
    """A field holds what does not belong there; `path` leads to it."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem

    def below(self, name: str) -> "FieldTypeError":
        """The same error, seen from one level higher."""
        separator = "." if self.path and not self.path.startswith("[") else ""
        return FieldTypeError(f"{name}{separator}{self.path}", self.problem)


def require_type(value: object, type_: type[Wire]) -> None:
    """Raise TypeError unless the value is of this kind."""
    if not isinstance(value, type_):
        found = "None" if value is None else type(value).__name__
        advice = "; decode it first" if isinstance(value, bytes | str | dict) else ""
        raise TypeError(f"expected a {type_.__name__}, got {found}{advice}")


def freeze(value: W) -> W:
    """The value with its types checked, its maps frozen copies and its lists tuples.

    Raises FieldError for a wrong type and QuantityError for an unreadable quantity.
    """
    try:
        return cast(W, compiled_copier(type(value))(value))
    except UnusualError:
        return _copy_by_field(value)


def _copy_by_field(value: W) -> W:
    changes = {}
    for name, accepted in _fields(type(value)):
        item = getattr(value, name)
        try:
            taken = _checked(item, accepted)
        except FieldTypeError as error:
            raise error.below(name) from None
        if taken is not item:
            changes[name] = taken
    return structs.replace(value, **changes)


def _checked(item: Any, accepted: "_AcceptedTypes") -> Any:
    detach = accepted[type(item)]
    return item if detach is None else detach(item)


class _AcceptedTypes(dict[type, CopyFunction | None]):
    """The types that a value may have, each with what to do about such a value."""

    def __missing__(self, found: type) -> CopyFunction:
        if str in self and issubclass(found, str):
            return str.__str__  # a StrEnum, say: what it spells
        expected = " or ".join(t.__name__ for t in self if t not in (FrozenMap, list))
        expected = expected.replace("NoneType", "None")
        raise FieldTypeError("", f"expected {expected}, got {found.__name__}")


class _AnyType(_AcceptedTypes):
    """For values of any type."""

    def __missing__(self, found: type) -> Any:
        return None


@cache
def _fields(type_: type[Wire]) -> tuple[tuple[str, _AcceptedTypes], ...]:
    return tuple(
        (name, _accepted_types(hint)) for name, hint in typing.get_type_hints(type_).items()
    )


def _accepted_types(declared: Any) -> _AcceptedTypes:
    origin = typing.get_origin(declared)
    if origin in (typing.Union, types.UnionType):
        union = [_accepted_types(argument).items() for argument in typing.get_args(declared)]
        return _AcceptedTypes(chain.from_iterable(union))
    if origin is tuple:
        detach = _list_copier(_accepted_types(typing.get_args(declared)[0]))
        return _AcceptedTypes({tuple: detach, list: detach})
    if origin is dict:
        return _AcceptedTypes({FrozenMap: None, dict: _map_copier(typing.get_args(declared)[1])})
    if isinstance(declared, type) and issubclass(declared, Wire):
        return _AcceptedTypes({declared: freeze})
    return _AnyType() if declared is Any else _AcceptedTypes({declared: None})


def _list_copier(accepted: _AcceptedTypes) -> CopyFunction:
    def detach_list(items: Any) -> Any:
        taken: list[Any] = []
        try:
            for item in items:
                taken.append(_checked(item, accepted))  # noqa: PERF401 - its length says where we are
        except FieldTypeError as error:
            raise error.below(f"[{len(taken)}]") from None
        same = type(items) is tuple and all(map(is_, taken, items))
        return items if same else tuple(taken)

    return detach_list


def _map_copier(element: Any) -> CopyFunction:
    accepted = _accepted_types(element)

    def take(key: object, item: Any) -> Any:
        try:
            return _checked(item, accepted)
        except FieldTypeError as error:
            raise error.below(f"[{key}]") from None

    if element is Quantity:
        take = _parse_quantity
    return lambda items: FrozenMap({str(key): take(key, item) for key, item in items.items()})


def _parse_quantity(key: object, item: object) -> Quantity:
    try:
        return Quantity.parse(item)
    except QuantityError as error:
        raise QuantityError(f"{key}: {error}") from None
