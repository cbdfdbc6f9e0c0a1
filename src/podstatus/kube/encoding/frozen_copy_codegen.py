"""Generated straight-line code that copies a value, from the declared types of its fields.

A status arrives for every pod every few seconds, and every field of it has to be checked. A loop
over the fields costs more than decoding did; straight-line code costs half of that. So the code is
generated once per type, as `dataclasses` generates an `__init__`. Unusual values (a list, an enum,
a wrong type) are left to `frozen_copy.freeze`, which can report them.
"""

import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from operator import is_
from typing import Any

from msgspec import structs

from podstatus.kube.encoding.wire_struct import FrozenMap, Wire, strip_none

CompiledCopy = Callable[[Any], Any]


class UnusualError(Exception):
    """The value has something that the generated code does not handle."""


@cache
def compiled_copier(kind: type[Wire]) -> Callable[..., Any]:
    """Return a function that copies a value of this type: the value itself if nothing is mutable.

    Parts that equal those of `known`, an earlier copy, are taken from it: comparing them is cheaper
    than checking them. The code for a type with a string and a list is:

        def copy(value, known=None):
            if not (type(value) is kind and type(value.name) is name_kinds): raise UnusualError
            items_old = value.items
            items_copy = (
                None if items_old is None else
                known.items if known is not None and items_old == known.items else
                copy_items(items_old)
            )
            if not (items_copy is items_old): return replace(value, items=items_copy)
            return value
    """
    scope: dict[str, Any] = {
        "kind": kind,
        "replace": structs.replace,
        "UnusualError": UnusualError,
    }
    # The code contains only names of declared fields.
    exec(_code(typing.get_type_hints(kind), scope), scope)  # noqa: S102
    return typing.cast(Callable[..., Any], scope["copy"])


def _code(fields: Mapping[str, Any], scope: dict[str, Any]) -> str:
    """Return the code for a type with these fields; objects it refers to are added to `scope`."""
    checks, steps, below = ["type(value) is kind"], [], []
    for name, declared in fields.items():
        scalars = _scalars(declared)
        if scalars:
            scope[f"{name}_kinds"] = scalars[0] if len(scalars) == 1 else scalars
            checks.append(f"type(value.{name}) {'in' if scalars[1:] else 'is'} {name}_kinds")
        elif declared is not Any:
            nested, pointer = strip_none(declared)
            scope[f"copy_{name}"] = _copier_of(nested)
            unless = f"None if {name}_old is None else " if pointer else ""
            known = f"known.{name} if known is not None and {name}_old == known.{name} else "
            steps.append(f"{name}_old = value.{name}")
            steps.append(f"{name}_copy = {unless}{known}copy_{name}({name}_old)")
            below.append(name)
    steps.insert(0, f"if not ({' and '.join(checks)}): raise UnusualError")
    if below:
        same = " and ".join(f"{name}_copy is {name}_old" for name in below)
        changes = ", ".join(f"{name}={name}_copy" for name in below)
        steps.append(f"if not ({same}): return replace(value, {changes})")
    return "\n ".join(["def copy(value, known=None):", *steps, "return value"])


def _scalars(declared: Any) -> tuple[type, ...]:
    """Return the declared types if all of them are scalars."""
    is_union = typing.get_origin(declared) in (typing.Union, types.UnionType)
    kinds = typing.get_args(declared) if is_union else (declared,)
    return kinds if all(map(_is_scalar, kinds)) else ()


def _is_scalar(declared: Any) -> bool:
    is_class = isinstance(declared, type) and typing.get_origin(declared) is None
    return is_class and declared is not Any and not issubclass(declared, Wire)


def _copier_of(declared: Any) -> CompiledCopy:
    origin, arguments = typing.get_origin(declared), typing.get_args(declared)
    if origin is tuple:
        return _list_copier(_copier_of(arguments[0]))
    if origin is dict:
        return _map_copier(_copier_of(arguments[1]))
    if _is_scalar(declared):
        return _scalar_copier(declared)
    return compiled_copier(declared) if isinstance(declared, type) else _unsupported


def _unsupported(_: Any) -> Any:
    """For types that no Kubernetes object has: lists of lists, maps of nullable values."""
    raise UnusualError


def _scalar_copier(kind: type) -> CompiledCopy:
    def copy(value: Any) -> Any:
        if type(value) is not kind:
            raise UnusualError
        return value

    return copy


def _list_copier(copy_item: CompiledCopy) -> CompiledCopy:
    def copy(items: Any) -> Any:
        if type(items) is not tuple:
            raise UnusualError
        copies = [copy_item(item) for item in items]
        return items if all(map(is_, copies, items)) else tuple(copies)

    return copy


def _map_copier(copy_item: CompiledCopy) -> CompiledCopy:
    def copy(items: Any) -> Any:
        if type(items) is FrozenMap:
            return items
        if type(items) is not dict or any(type(key) is not str for key in items):
            raise UnusualError
        return FrozenMap({key: copy_item(item) for key, item in items.items()})

    return copy
