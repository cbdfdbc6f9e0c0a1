"""JSON into declared types, by the rules of Go's encoding/json.

A key may be spelled in any case, and may come twice: then the second is read on top of the
first, so that maps and structs are merged. Unknown keys are skipped. null empties a map, a
list or a pointer, and leaves everything else as it was.
"""

import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, NoReturn, TypeVar, cast

from msgspec import structs

from podstatus.checkpoint.formats.go_json_scanner import (
    JsonList,
    JsonNumber,
    JsonObject,
    JsonText,
    MalformedError,
    Node,
    scan,
)
from podstatus.kube.encoding.wire import Wire, strip_none
from podstatus.kube.scalars.quantity import Quantity, QuantityError

W = TypeVar("W", bound=Wire)

_UINT64_END = 2**64


def read(data: bytes, onto: W) -> W:
    """The object that the text holds, read on top of this one. Raises MalformedError.

    An `int` is a uint64, the one kind of number that checkpoints have.
    """
    return cast(W, _read(scan(data), type(onto), onto))


def _read(node: Node, declared: Any, old: Any) -> Any:
    """The value of this type that the node means, read on top of an old one."""
    kind, pointer = strip_none(declared)
    origin = typing.get_origin(kind)
    if origin is dict:
        entries = _read_map(node, typing.get_args(kind)[1], old)
        return entries if pointer else entries or {}
    if origin is tuple:
        return _read_list(node, typing.get_args(kind)[0], old)
    if kind is Quantity:
        return _read_quantity(node, nullable=pointer)
    if node is None:
        return None if pointer else old
    if kind is str:
        return node.value if isinstance(node, JsonText) else _refuse("a string", node)
    if kind is int:
        return _read_uint64(node)
    return _read_struct(node, kind, kind() if old is None else old)


def _read_map(node: Node, element: Any, old: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if node is None:
        return None
    if not isinstance(node, JsonObject):
        return _refuse("an object", node)
    return dict(old or {}) | {key: _read(item, element, _zero(element)) for key, item in node[0]}


def _read_list(node: Node, element: Any, old: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    if node is None:
        return None
    if not isinstance(node, JsonList):
        return _refuse("an array", node)
    # Go reads the elements of a repeated list on top of those of the first.
    below = list(old or ())[: len(node.items)]
    below += [_zero(element)] * (len(node.items) - len(below))
    return tuple(_read(item, element, was) for item, was in zip(node.items, below, strict=True))


def _read_struct(node: Node, kind: type[Wire], old: Wire) -> Wire:
    if not isinstance(node, JsonObject):
        return _refuse("an object", node)
    fields = _fields(kind)
    value = old
    for key, item in node.members:
        name, declared = fields.get(key) or fields.get(_folded(key)) or ("", None)
        if name:
            was = getattr(value, name)
            try:
                value = structs.replace(value, **{name: _read(item, declared, was)})
            except MalformedError as error:
                raise MalformedError(f"{key}: {error}") from error
    return value


def _read_quantity(node: Node, *, nullable: bool) -> Quantity | None:
    """Go hands a quantity its text as it is written: a number will do, escapes will not."""
    if node is None and nullable:
        return None
    if isinstance(node, JsonList | JsonObject | bool):
        return _refuse("a quantity", node)
    try:
        return Quantity.parse(None if node is None else node.raw)
    except QuantityError as error:
        raise MalformedError(str(error)) from error


def _read_uint64(node: Node) -> int:
    if isinstance(node, JsonNumber) and node.raw.isdecimal():
        number = int(node.raw) if len(node.raw) <= 20 else _UINT64_END
        if number < _UINT64_END:
            return number
    return _refuse("a whole number from 0 to 2^64-1", node)


def _refuse(expected: str, node: Node) -> NoReturn:
    match node:
        case JsonNumber(raw):
            found = raw[:40]
        case bool():
            found = str(node).lower()
        case _:
            found = {JsonText: "a string", JsonList: "an array"}.get(type(node), "an object")
    raise MalformedError(f"{expected} is expected, found {found}")


def _zero(declared: Any) -> Any:
    kind, pointer = strip_none(declared)
    return None if pointer or typing.get_origin(kind) is dict or kind is Quantity else kind()


@cache
def _fields(kind: type[Wire]) -> dict[str, tuple[str, Any]]:
    """The attribute and the type of each field, by its key and by its key in lower case."""
    hints = typing.get_type_hints(kind)
    fields = {info.encode_name: (info.name, hints[info.name]) for info in structs.fields(kind)}
    return {_folded(key): field for key, field in fields.items()} | fields


def _folded(key: str) -> str:
    """The key in one case, letter by letter: Go lets a long s be an s, but not ß two of them."""
    folds = (char.casefold() for char in key)
    return "".join(fold if len(fold) == 1 else char for char, fold in zip(key, folds, strict=True))
