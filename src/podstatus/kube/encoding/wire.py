"""The base of every object that travels, and the defaults that Go prints.

A field with a plain default is left out when it holds Go's zero value (`omitempty`);
a field with a `default_factory` is always printed. Lists and maps are `None` when Go's
are nil, which it prints like an empty one but does not always treat like one.
"""

import types
import typing
from typing import Any, NoReturn, TypeVar

import msgspec

from podstatus.kube.scalars.quantity import Quantity

V = TypeVar("V")


class Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A frozen value with Kubernetes' field names on the wire."""


class FrozenMap(dict[str, V]):
    """A map of a value that was taken over: nobody can change it any more."""

    def _raise_frozen(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("this map belongs to a frozen value; make a new one from a copy of it")

    def __reduce__(self) -> Any:
        return FrozenMap, (dict(self),)

    __setitem__ = __delitem__ = __ior__ = _raise_frozen
    clear = pop = popitem = setdefault = update = _raise_frozen


def nil() -> None:
    """Default of a list, map or pointer that Go prints as `null` instead of leaving it out."""


def zero_quantity() -> Quantity:
    """Default of a quantity that Go always prints."""
    return Quantity("0")


def strip_none(declared: Any) -> tuple[Any, bool]:
    """What the type of a field is besides None, and whether None is declared too."""
    arguments = typing.get_args(declared)
    if typing.get_origin(declared) is types.UnionType and types.NoneType in arguments:
        return next(argument for argument in arguments if argument is not types.NoneType), True
    return declared, False
