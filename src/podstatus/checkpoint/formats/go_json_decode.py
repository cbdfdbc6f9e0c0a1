"""Decode JSON into declared types by the rules of Go's encoding/json.

Keys are case-insensitive. A repeated key is decoded onto the value of the first one, so maps and
structs are merged. Unknown keys are skipped. null clears a map, a list or a pointer, and leaves any
other value unchanged.
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
from podstatus.kube.encoding.wire_struct import Wire, strip_none
from podstatus.kube.scalars.quantity import Quantity, QuantityError

W = TypeVar("W", bound=Wire)

_MAX_UINT64 = 2**64


def decode_onto(data: bytes, onto: W) -> W:
    """Decode a text onto an existing object and return the result. Raises MalformedError.

    An `int` is a uint64, the only kind of number in checkpoints.
    """
    return cast(W, _decode_node(scan(data), type(onto), onto))


def _decode_node(node: JsonNode, declared: Any, old: Any) -> Any:
    """Decode a node as a value of the declared type, onto an old value."""
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
    # Go decodes the elements of a repeated list onto those of the first one.
    old_items = list(old or ())[: len(node.items)]
    old_items += [_zero_value(element)] * (len(node.items) - len(old_items))
    return tuple(
        _decode_node(item, element, old_item)
        for item, old_item in zip(node.items, old_items, strict=True)
    )


def _decode_struct(node: JsonNode, type_: type[Wire], old: Wire) -> Wire:
    if not isinstance(node, JsonObject):
        return _raise_mismatch("an object", node)
    fields = _fields_by_key(type_)
    value = old
    for key, item in node.members:
        name, declared = fields.get(key) or fields.get(_fold_case(key)) or ("", None)
        if name:
            old_value = getattr(value, name)
            try:
                value = structs.replace(value, **{name: _decode_node(item, declared, old_value)})
            except MalformedError as error:
                raise MalformedError(f"{key}: {error}") from error
    return value


def _decode_quantity(node: JsonNode, *, nullable: bool) -> Quantity | None:
    """Parse the raw text, as Go does: a number is valid, a string with escapes is not."""
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
    return _raise_mismatch("an integer from 0 to 2^64-1", node)


def _raise_mismatch(expected: str, node: JsonNode) -> NoReturn:
    match node:
        case JsonNumber(raw):
            actual = raw[:40]
        case bool():
            actual = str(node).lower()
        case _:
            actual = {JsonString: "a string", JsonArray: "an array"}.get(type(node), "an object")
    raise MalformedError(f"expected {expected}, got {actual}")


def _zero_value(declared: Any) -> Any:
    kind, pointer = strip_none(declared)
    return None if pointer or typing.get_origin(kind) is dict or kind is Quantity else kind()


@cache
def _fields_by_key(type_: type[Wire]) -> dict[str, tuple[str, Any]]:
    """Return attribute and type of each field, by its key and by its case-folded key."""
    hints = typing.get_type_hints(type_)
    fields = {info.encode_name: (info.name, hints[info.name]) for info in structs.fields(type_)}
    return {_fold_case(key): field for key, field in fields.items()} | fields


def _fold_case(key: str) -> str:
    """Fold each character by itself: as in Go, a long s equals `s`, but `ß` does not equal `ss`."""
    folds = (char.casefold() for char in key)
    return "".join(fold if len(fold) == 1 else char for char, fold in zip(key, folds, strict=True))
