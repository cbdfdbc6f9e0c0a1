"""Straight-line code that takes over a usual value, written from what its types declare.

A status comes in for every pod every few seconds, and every field of it is to be looked at. In
a loop over fields that costs more than decoding it did, in straight-line code half of that. So
the code is written once per type, as `dataclasses` writes an `__init__`. Whatever is unusual (a
list, an enum, a wrong type) is left to `detach`, which can name it.
"""

import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from operator import is_
from typing import Any

from msgspec import structs

from podstatus.kube.encoding.wire import FrozenMap, Wire, strip_none

CompiledCopy = Callable[[Any], Any]


class UnusualError(Exception):
    """There is something in the value that straight-line code does not deal with."""


@cache
def compiled_copier(kind: type[Wire]) -> CompiledCopy:
    """What takes over a value of this kind: itself, or a copy with its maps frozen.

    The code for a kind with a text and a list reads:

        def take(value):
            if not (type(value) is kind and type(value.name) is name_kinds): raise UnusualError
            items_given = value.items
            items_taken = None if items_given is None else take_items(items_given)
            if not (items_taken is items_given): return replace(value, items=items_taken)
            return value
    """
    scope: dict[str, Any] = {
        "kind": kind,
        "replace": structs.replace,
        "UnusualError": UnusualError,
    }
    # Nothing but names of declared fields goes into the code.
    exec(_code(typing.get_type_hints(kind), scope), scope)  # noqa: S102
    return typing.cast(CompiledCopy, scope["take"])


def _code(fields: Mapping[str, Any], scope: dict[str, Any]) -> str:
    """The code for a kind with these fields; what it refers to is put into the scope."""
    checks, steps, below = ["type(value) is kind"], [], []
    for name, declared in fields.items():
        scalars = _scalars(declared)
        if scalars:
            scope[f"{name}_kinds"] = scalars[0] if len(scalars) == 1 else scalars
            checks.append(f"type(value.{name}) {'in' if scalars[1:] else 'is'} {name}_kinds")
        elif declared is not Any:
            nested, pointer = strip_none(declared)
            scope[f"take_{name}"] = _copier_of(nested)
            unless = f"None if {name}_given is None else " if pointer else ""
            steps.append(f"{name}_given = value.{name}")
            steps.append(f"{name}_taken = {unless}take_{name}({name}_given)")
            below.append(name)
    steps.insert(0, f"if not ({' and '.join(checks)}): raise UnusualError")
    if below:
        same = " and ".join(f"{name}_taken is {name}_given" for name in below)
        changes = ", ".join(f"{name}={name}_taken" for name in below)
        steps.append(f"if not ({same}): return replace(value, {changes})")
    return "\n ".join(["def take(value):", *steps, "return value"])


def _scalars(declared: Any) -> tuple[type, ...]:
    """The types that are declared, if there is nothing below any of them."""
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
    """For what no object of Kubernetes has: lists of lists, maps of what may be null."""
    raise UnusualError


def _scalar_copier(kind: type) -> CompiledCopy:
    def take(value: Any) -> Any:
        if type(value) is not kind:
            raise UnusualError
        return value

    return take


def _list_copier(copy_item: CompiledCopy) -> CompiledCopy:
    def take(items: Any) -> Any:
        if type(items) is not tuple:
            raise UnusualError
        taken = [copy_item(item) for item in items]
        return items if all(map(is_, taken, items)) else tuple(taken)

    return take


def _map_copier(copy_item: CompiledCopy) -> CompiledCopy:
    def take(items: Any) -> Any:
        if type(items) is FrozenMap:
            return items
        if type(items) is not dict or any(type(key) is not str for key in items):
            raise UnusualError
        return FrozenMap({key: copy_item(item) for key, item in items.items()})

    return take
