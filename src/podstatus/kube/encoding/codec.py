"""Decode and encode wire objects as Go's types would.

`decode` and `from_document` read; `to_document` returns the plain JSON value that Go's encoder
would print: empty fields are omitted, times have whole seconds, quantities are in canonical form,
and invalid UTF-8 becomes U+FFFD.
"""

import typing
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import structs

from podstatus.base.msgspec_json import convert_json, json_decoder
from podstatus.kube.encoding.go_json import ABSENT, Absent, JsonValue
from podstatus.kube.encoding.wire_struct import Wire, strip_none
from podstatus.kube.scalars.go_text import valid_text
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.scalars.time import MicroTime, Time

W = TypeVar("W", bound=Wire)
Convert = Callable[[Any], Any]


class FieldEncoding(NamedTuple):
    """How a field is encoded."""

    name: str
    """The name on the wire."""
    emit_nil: bool
    emit_empty: bool
    convert: Convert | None


class DecodeError(ValueError):
    """An object could not be decoded; the message says where and why."""


def decode(data: bytes | str, kind: type[W]) -> W:
    """Decode an object from JSON text. Raises DecodeError."""
    try:
        return json_decoder(kind, _read_scalar).decode(data)
    except msgspec.ValidationError:
        return from_document(_decode_plain(data, kind), kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise _decode_error(kind, f"not JSON: {error}") from error


def from_document(document: object, kind: type[W]) -> W:
    """Decode an object from a plain JSON value; null counts as absent, as in Go.

    Raises DecodeError.
    """
    try:
        return convert_json(document, kind, _read_scalar)
    except (msgspec.ValidationError, RecursionError):
        pass
    try:
        return convert_json(_without_nulls(document, kind), kind, _read_scalar)
    except (msgspec.ValidationError, RecursionError) as error:
        raise _decode_error(kind, str(error)) from error


def _decode_plain(data: bytes | str, kind: type[Wire]) -> object:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise _decode_error(kind, f"not JSON: {error}") from error


def _decode_error(kind: type[Wire], reason: str) -> DecodeError:
    return DecodeError(f"cannot read a {kind.__name__}: {reason}")


def to_document(value: Wire) -> dict[str, Any]:
    """Return the plain JSON value that Go's encoder would print for this object."""
    return typing.cast(dict[str, Any], _compile_encoder(type(value))(value))


def encode_field(item: Any, field: FieldEncoding) -> JsonValue | Absent:
    """Return the JSON value of a field; ABSENT if Go's encoder omits it."""
    if item is None:
        return None if field.emit_nil else ABSENT
    if item or field.emit_empty:
        return typing.cast(JsonValue, item if field.convert is None else field.convert(item))
    return ABSENT


@cache
def _compile_encoder(kind: type[Wire]) -> Convert:
    """Return an encoder for this type: generated straight-line code, as in `frozen_copy_codegen`.

    The code for a type with a string that may be omitted and one that is always printed is:

        def print_value(value):
            document = {}
            if item := value.reason: document["reason"] = item if item.isascii() else …
            document["type"] = None if (item := value.type) is None else item if …
            return document
    """
    scope: dict[str, Any] = {"valid_text": valid_text}
    lines = ["def print_value(value):", "document = {}"]
    for name, field in zip(kind.__struct_fields__, field_encodings(kind), strict=True):
        printed = _INLINE_ENCODERS.get(field.convert)
        if printed is None:
            scope[f"convert_{name}"] = field.convert
            printed = f"convert_{name}(item)"
        lines.append(_encoder_line(name, field, printed))
    # The code contains only names of declared fields.
    exec("\n ".join([*lines, "return document"]), scope)  # noqa: S102
    return typing.cast(Convert, scope["print_value"])


def _time_wire(time: Time | MicroTime) -> str | None:
    return time.wire


_INLINE_ENCODERS: dict[Convert | None, str] = {
    None: "item",
    valid_text: "item if item.isascii() else valid_text(item)",
    _time_wire: "item.wire",
}
"""Inlined for the most frequent types, which saves a call for each value."""


def _encoder_line(name: str, field: FieldEncoding, expression: str) -> str:
    target = f"document[{field.name!r}]"
    if field.emit_nil:
        return f"{target} = None if (item := value.{name}) is None else {expression}"
    condition = (
        f"(item := value.{name}) is not None" if field.emit_empty else f"item := value.{name}"
    )
    return f"if {condition}: {target} = {expression}"


def _read_scalar(kind: type, value: object) -> object:
    if kind is Time:
        return Time.parse(value)
    if kind is MicroTime:
        return MicroTime.parse(value)
    if kind is Quantity:
        return Quantity.parse(value)
    raise NotImplementedError(kind)


@cache
def field_encodings(kind: type[Wire]) -> tuple[FieldEncoding, ...]:
    """Return the encoding of each field of a type, in declaration order."""
    hints = typing.get_type_hints(kind)
    plan = []
    for info in structs.fields(kind):
        always = info.default_factory is not msgspec.NODEFAULT
        declared, pointer = strip_none(hints[info.name])
        to_scalar_or_struct = pointer and typing.get_origin(declared) is None
        keep_empty = always or to_scalar_or_struct or declared is Any
        plan.append(FieldEncoding(info.encode_name, always, keep_empty, _converter(declared)))
    return tuple(plan)


def _converter(declared: Any) -> Convert | None:
    origin = typing.get_origin(declared)
    if origin is tuple:
        return _list_converter(_converter(typing.get_args(declared)[0]))
    if origin is dict:
        return _map_converter(_converter(typing.get_args(declared)[1]))
    if declared is str:
        return valid_text
    if declared in (Time, MicroTime):
        return _time_wire
    if declared is Quantity:
        return _quantity_wire
    if isinstance(declared, type) and issubclass(declared, Wire):
        return _compile_encoder(declared)
    return None


def _list_converter(convert: Convert | None) -> Convert:
    return list if convert is None else lambda items: [convert(item) for item in items]


def _map_converter(convert: Convert | None) -> Convert:
    if convert is None:
        return dict
    return lambda items: {valid_text(key): convert(item) for key, item in items.items()}


def _quantity_wire(quantity: Quantity) -> str:
    return quantity.canonical


def _without_nulls(document: object, declared: Any) -> object:
    """Drop nulls that Go decodes as the zero value, according to the declared type."""
    declared, _ = strip_none(declared)
    origin = typing.get_origin(declared)
    if isinstance(document, dict):
        if origin is dict:
            return _map_without_nulls(document, typing.get_args(declared)[1])
        if isinstance(declared, type) and issubclass(declared, Wire):
            hints = _wire_hints(declared)
            return {
                key: _without_nulls(item, hints.get(key, Any))
                for key, item in document.items()
                if item is not None
            }
    if isinstance(document, list) and origin is tuple:
        element = typing.get_args(declared)[0]
        return [_zero(element) if i is None else _without_nulls(i, element) for i in document]
    return document


def _map_without_nulls(document: dict[str, Any], element: Any) -> dict[str, Any]:
    return {
        key: _zero(element) if item is None else _without_nulls(item, element)
        for key, item in document.items()
    }


def _zero(declared: Any) -> object:
    """Return the JSON value that Go decodes for a null element of a list or map."""
    if isinstance(declared, type) and issubclass(declared, Wire):
        return {}
    if declared in (str, int, bool):
        return declared()
    return None


@cache
def _wire_hints(kind: type[Wire]) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {info.encode_name: hints[info.name] for info in structs.fields(kind)}
