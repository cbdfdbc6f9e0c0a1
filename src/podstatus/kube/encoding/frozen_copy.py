"""Copy a value from a caller: all types checked, nothing mutable shared.

Python does not check the field types of a struct, and a caller can still modify a map that it
passed in. So every value is checked once: by generated straight-line code in the usual case,
otherwise field by field, which also reports the path of a wrong type.
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
from podstatus.kube.encoding.wire_struct import FrozenMap, Wire
from podstatus.kube.scalars.quantity import Quantity, QuantityError

W = TypeVar("W", bound=Wire)
CopyFunction = Callable[[Any], Any]


class FieldTypeError(TypeError):
    """A field has a value of the wrong type; `path` is the path of the field."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem

    def below(self, name: str) -> "FieldTypeError":
        """Return the error with a name prepended to its path."""
        separator = "." if self.path and not self.path.startswith("[") else ""
        return FieldTypeError(f"{name}{separator}{self.path}", self.problem)


def require_type(value: object, type_: type[Wire]) -> None:
    """Raise TypeError unless the value is of this type."""
    if not isinstance(value, type_):
        actual = "None" if value is None else type(value).__name__
        advice = "; decode it first" if isinstance(value, bytes | str | dict) else ""
        raise TypeError(f"expected a {type_.__name__}, got {actual}{advice}")


def freeze(value: W, known: W | None = None) -> W:
    """Return the value with all types checked, maps copied and frozen, and lists as tuples.

    `known` is an earlier copy; parts that are equal are taken from it, without further checks.
    Raises FieldTypeError for a wrong type and QuantityError for an invalid quantity.
    """
    try:
        return cast(W, compiled_copier(type(value))(value, known))
    except UnusualError:
        return _copy_by_field(value)


def _copy_by_field(value: W) -> W:
    changes = {}
    for name, accepted in _fields(type(value)):
        item = getattr(value, name)
        try:
            copy = _checked(item, accepted)
        except FieldTypeError as error:
            raise error.below(name) from None
        if copy is not item:
            changes[name] = copy
    return structs.replace(value, **changes)


def _checked(item: Any, accepted: "_AcceptedTypes") -> Any:
    copy = accepted[type(item)]
    return item if copy is None else copy(item)


class _AcceptedTypes(dict[type, CopyFunction | None]):
    """Maps the types that a value may have to the function that copies it; None to share it."""

    def __missing__(self, actual: type) -> CopyFunction:
        if str in self and issubclass(actual, str):
            return str.__str__  # such as a StrEnum: its value
        expected = " or ".join(t.__name__ for t in self if t not in (FrozenMap, list))
        expected = expected.replace("NoneType", "None")
        raise FieldTypeError("", f"expected {expected}, got {actual.__name__}")


class _AnyType(_AcceptedTypes):
    """Accepts values of any type."""

    def __missing__(self, actual: type) -> Any:
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
        copy = _list_copier(_accepted_types(typing.get_args(declared)[0]))
        return _AcceptedTypes({tuple: copy, list: copy})
    if origin is dict:
        return _AcceptedTypes({FrozenMap: None, dict: _map_copier(typing.get_args(declared)[1])})
    if isinstance(declared, type) and issubclass(declared, Wire):
        return _AcceptedTypes({declared: freeze})
    return _AnyType() if declared is Any else _AcceptedTypes({declared: None})


def _list_copier(accepted: _AcceptedTypes) -> CopyFunction:
    def copy_list(items: Any) -> Any:
        copies: list[Any] = []
        try:
            for item in items:
                copies.append(_checked(item, accepted))  # noqa: PERF401 - its length is the index
        except FieldTypeError as error:
            raise error.below(f"[{len(copies)}]") from None
        same = type(items) is tuple and all(map(is_, copies, items))
        return items if same else tuple(copies)

    return copy_list


def _map_copier(element: Any) -> CopyFunction:
    accepted = _accepted_types(element)

    def copy_item(key: object, item: Any) -> Any:
        try:
            return _checked(item, accepted)
        except FieldTypeError as error:
            raise error.below(f"[{key}]") from None

    if element is Quantity:
        copy_item = _parse_quantity
    return lambda items: FrozenMap({str(key): copy_item(key, item) for key, item in items.items()})


def _parse_quantity(key: object, item: object) -> Quantity:
    try:
        return Quantity.parse(item)
    except QuantityError as error:
        raise QuantityError(f"{key}: {error}") from None
