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
    JsonArray,
    JsonNode,
    JsonNumber,
    JsonObject,
    JsonString,
    MalformedError,
    scan,
)
from podstatus.kube.encoding.wire import Wire, strip_none
from podstatus.kube.scalars.quantity import Quantity, QuantityError

W = TypeVar("W", bound=Wire)

_MAX_UINT64 = 2**64


def decode_onto(data: bytes, onto: W) -> W:
    """The object that the text holds, read on top of this one. Raises MalformedError.

    An `int` is a uint64, the one kind of number that checkpoints have.
    """
    return cast(W, _decode_node(scan(data), type(onto), onto))


def _decode_node(node: JsonNode, declared: Any, old: Any) -> Any:
    """The value of this type that the node means, read on top of an old one."""
    kind, pointer = strip_none(declared)
    origin = typing.get_origin(kind)
    if origin is dict:
        entries = _decode_map(node, typing.get_args(kind)[1], old)
        return entries if pointer else entries or {}
    if origin is tuple:
        return _decode_list(node, typing.get_args(kind)[0], old)
    if kind is Quantity:
        return _decode_quantity(node, nullable=pointer)
    if node is None:
        return None if pointer else old
    if kind is str:
        return node.value if isinstance(node, JsonString) else _raise_mismatch("a string", node)
    if kind is int:
        return _decode_uint64(node)
    return _decode_struct(node, kind, kind() if old is None else old)


def _decode_map(
    node: JsonNode, element: Any, old: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    if node is None:
        return None
    if not isinstance(node, JsonObject):
        return _raise_mismatch("an object", node)
    return dict(old or {}) | {
        key: _decode_node(item, element, _zero_value(element)) for key, item in node[0]
    }


def _decode_list(
    node: JsonNode, element: Any, old: tuple[Any, ...] | None
) -> tuple[Any, ...] | None:
    if node is None:
        return None
    if not isinstance(node, JsonArray):
        return _raise_mismatch("an array", node)
    # Go reads the elements of a repeated list on top of those of the first.
    below = list(old or ())[: len(node.items)]
    below += [_zero_value(element)] * (len(node.items) - len(below))
    return tuple(
        _decode_node(item, element, was) for item, was in zip(node.items, below, strict=True)
    )


def _decode_struct(node: JsonNode, type_: type[Wire], old: Wire) -> Wire:
    if not isinstance(node, JsonObject):
        return _raise_mismatch("an object", node)
    fields = _fields_by_key(type_)
    value = old
    for key, item in node.members:
        name, declared = fields.get(key) or fields.get(_fold_case(key)) or ("", None)
        if name:
            was = getattr(value, name)
            try:
                value = structs.replace(value, **{name: _decode_node(item, declared, was)})
            except MalformedError as error:
                raise MalformedError(f"{key}: {error}") from error
    return value


def _decode_quantity(node: JsonNode, *, nullable: bool) -> Quantity | None:
    """Go hands a quantity its text as it is written: a number will do, escapes will not."""
    if node is None and nullable:
        return None
    if isinstance(node, JsonArray | JsonObject | bool):
        return _raise_mismatch("a quantity", node)
    try:
        return Quantity.parse(None if node is None else node.raw)
    except QuantityError as error:
        raise MalformedError(str(error)) from error


def _decode_uint64(node: JsonNode) -> int:
    if isinstance(node, JsonNumber) and node.raw.isdecimal():
        number = int(node.raw) if len(node.raw) <= 20 else _MAX_UINT64
        if number < _MAX_UINT64:
            return number
    return _raise_mismatch("a whole number from 0 to 2^64-1", node)


def _raise_mismatch(expected: str, node: JsonNode) -> NoReturn:
    match node:
        case JsonNumber(raw):
            found = raw[:40]
        case bool():
            found = str(node).lower()
        case _:
            found = {JsonString: "a string", JsonArray: "an array"}.get(type(node), "an object")
    raise MalformedError(f"{expected} is expected, found {found}")


def _zero_value(declared: Any) -> Any:
    kind, pointer = strip_none(declared)
    return None if pointer or typing.get_origin(kind) is dict or kind is Quantity else kind()


@cache
def _fields_by_key(type_: type[Wire]) -> dict[str, tuple[str, Any]]:
    """The attribute and the type of each field, by its key and by its key in lower case."""
    hints = typing.get_type_hints(type_)
    fields = {info.encode_name: (info.name, hints[info.name]) for info in structs.fields(type_)}
    return {_fold_case(key): field for key, field in fields.items()} | fields


def _fold_case(key: str) -> str:
    """The key in one case, letter by letter: Go lets a long s be an s, but not ß two of them."""
    folds = (char.casefold() for char in key)
    return "".join(fold if len(fold) == 1 else char for char, fold in zip(key, folds, strict=True))
