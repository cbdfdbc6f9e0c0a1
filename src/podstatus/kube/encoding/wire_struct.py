"""The base class of wire types, and the defaults that Go prints.

A field with a plain default is omitted if it has Go's zero value (`omitempty`); a field with a
`default_factory` is always printed. Lists and maps are `None` where Go's are nil: Go prints nil
like an empty value, but does not always treat it as one.
"""

import types
import typing
from typing import Annotated, Any, NoReturn, TypeAlias, TypeVar

import msgspec

from podstatus.kube.scalars.quantity import Quantity

V = TypeVar("V")

Int64: TypeAlias = Annotated[int, "int64"]
"""An int64 in Go; a plain `int` is an int32."""
Base64: TypeAlias = Annotated[str, "bytes"]
"""A byte slice in Go, which JSON has in base64."""


class Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A frozen value with the field names of Kubernetes on the wire."""


class FrozenMap(dict[str, V]):
    """An immutable map, part of a value that was copied by `freeze`."""

    def _raise_frozen(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("this map belongs to a frozen value; modify a copy of it")

    def __reduce__(self) -> Any:
        return FrozenMap, (dict(self),)

    __setitem__ = __delitem__ = __ior__ = _raise_frozen
    clear = pop = popitem = setdefault = update = _raise_frozen


def nil() -> None:
    """Default of a list, map or pointer that Go prints as `null` instead of omitting it."""


def zero_quantity() -> Quantity:
    """Default of a quantity that Go always prints."""
    return Quantity("0")


def strip_none(declared: Any) -> tuple[Any, bool]:
    """Return the declared type without None, and whether None was part of it."""
    arguments = typing.get_args(declared)
    is_union = typing.get_origin(declared) in (typing.Union, types.UnionType)
    if is_union and types.NoneType in arguments:
        return next(argument for argument in arguments if argument is not types.NoneType), True
    return declared, False
