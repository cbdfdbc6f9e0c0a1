"""Check JSON against the Go types of an object, with the messages of Go's decoder.

Integers are those of Go: `periodSeconds: 2147483648` does not fit an int32, `1.0` and `1e3` are no
integers. A value that does not fit must not be stored: every Go client that lists it would fail.

`json_fits_schema` and `value_fits_schema` are fast, for every request; `unmarshal_error` returns
the message, from a walk in the order of the text.

Upstream: sigs.k8s.io/json, decode.go (errors are saved, and the first one is returned; errors of
types with their own UnmarshalJSON, like quantities, stop the decoding); apimachinery v0.36.4,
pkg/api/resource.
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import Annotated, Any, Final

import msgspec

from podstatus.base.msgspec_json import convert_json, json_decoder
from podstatus.kube.patch.schema import Schema, schema_of
from podstatus.kube.scalars.quantity import (
    MAX_DIGITS,
    Quantity,
    QuantityError,
    QuantityRangeError,
    QuantitySuffixError,
)
from podstatus.kube.validation.go_type_names import element_go_type, go_path, go_type, plain_go_type
from podstatus.kube.validation.strict_fields import JsonMembers

INTEGER_BOUNDS: Final = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
}

_INTEGER: Final = re.compile("-?[0-9]{1,19}")
_MAX_SHOWN: Final = 100
"""Maximum length of a number in characters: a body may be a single number of a megabyte."""
_MAX_AFTER_ERROR: Final = 10_000
"""Values that are read after the first error, to find one that stops the decoding."""
_QUANTITY: Final = re.compile(r"[+-]?[0-9]*+(?:\.[0-9]*+)?+[eEinumkKMGTP]*+[+-]?[0-9]*+")
_NANO_DIGITS: Final = 9
"""Quantities are added up in units of 1e-9."""
_NO_FORMAT: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)


class NumberLiteral(str):
    """A number as spelled in the text."""

    __slots__ = ()


class _Location(msgspec.Struct, frozen=True):
    """The position of the decoder: the struct it fills, and the names that lead there."""

    name: str = ""
    path: tuple[str, ...] = ()


class _UnmarshalerError(Exception):
    """A type with its own UnmarshalJSON rejected a value, which stops the decoding."""


def json_fits_schema(text: bytes, schema: Schema) -> bool:
    """Return whether a text is JSON that fits the type; see `unmarshal_error` for the reason."""
    try:
        json_decoder(_decoder_type(schema.type), _read_quantity).decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


def value_fits_schema(value: object, schema: Schema) -> bool:
    """Return whether a plain JSON value fits the type."""
    try:
        convert_json(value, _decoder_type(schema.type), _read_quantity)
    except (msgspec.ValidationError, RecursionError):
        return False
    return True


def unmarshal_error(value: object, schema: Schema) -> str:
    """Return the message of Go's decoder if a JSON value does not fit the type, else empty.

    Objects are dicts or `JsonMembers`; numbers are `NumberLiteral`, or int and float.
    """
    reading = _Walk()
    try:
        reading.read(value, schema.type, plain_go_type(schema.type), _Location())
    except _UnmarshalerError as error:
        return str(error)
    return reading.first_error


class _Walk:
    """A walk through one value; keeps the first error that does not stop the decoding."""

    def __init__(self) -> None:
        self.first_error = ""
        self._remaining = _MAX_AFTER_ERROR

    def _is_exhausted(self) -> bool:
        """Return whether an error was found and another one is unlikely to replace it."""
        self._remaining -= bool(self.first_error)
        return self._remaining < 0

    def read(self, value: Any, of_type: str, go: str, at: _Location) -> None:
        if value is None or of_type == "FieldsV1" or self._is_exhausted():
            return
        if of_type in _UNMARSHALERS:
            _unmarshal(value, of_type, at)
        elif of_type.startswith("[") and isinstance(value, list) and not _is_object(value):
            self._read_all(value, of_type, go, at)
        elif of_type.startswith("{") and _is_object(value):
            self._read_all((item for _, item in _members(value)), of_type, go, at)
        elif of_type not in _SCALARS and of_type[0] not in "[{" and _is_object(value):
            self._read_fields(value, schema_of(of_type), at)
        elif message := _mismatch(value, of_type):
            self.first_error = self.first_error or _mismatch_error(message, go, at)

    def _read_all(self, items: Iterable[Any], of_type: str, go: str, at: _Location) -> None:
        element = of_type[1:-1]
        go = element_go_type(go, element)
        if element in _SCALARS and (self.first_error or _all_fit(items := list(items), element)):
            return
        for item in items:
            self.read(item, element, go, at)

    def _read_fields(self, value: Any, schema: Schema, at: _Location) -> None:
        for key, item in _members(value):
            if (field := schema.fields.get(key)) is not None:
                location = _Location(schema.type, at.path + go_path(schema.type, key))
                name = field.schema.type
                self.read(item, name, go_type(schema.type, key, name), location)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict | JsonMembers)


def _members(value: Any) -> Iterable[tuple[str, Any]]:
    return value.items() if isinstance(value, dict) else value


def _mismatch_error(value: str, go: str, at: _Location) -> str:
    if not at.path:
        return f"json: cannot unmarshal {value} into Go value of type {go}"
    path = ".".join(at.path)
    return f"json: cannot unmarshal {value} into Go struct field {at.name}.{path} of type {go}"


def _mismatch(value: Any, of_type: str) -> str:
    """Return Go's description of a value that is not of a type; empty if it is."""
    kind = json_kind(value)
    if of_type in INTEGER_BOUNDS and kind == "number":
        return "" if _is_integer(value, of_type) else f"number {_literal(value)}"
    return "" if _SCALARS.get(of_type) == kind else kind


def _all_fit(items: list[Any], of_type: str) -> bool:
    """Return whether all elements are short and of the type: a list may have a million."""
    kinds = set(map(type, items))
    if of_type in INTEGER_BOUNDS:
        if kinds == {int}:
            low, high = INTEGER_BOUNDS[of_type]
            return bool(low <= min(items) and max(items) <= high)
        digits = kinds == {NumberLiteral} and "".join(items).isdecimal()
        return digits and max(map(len, items)) < len(str(2**31))
    return kinds == {bool if of_type == "bool" else str}


def json_kind(value: Any) -> str:
    """Return Go's name for the kind of a JSON value that is not null."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float | NumberLiteral):
        return "number"
    if isinstance(value, str):
        return "string"
    return "object" if _is_object(value) else "array"


def _is_integer(value: Any, of_type: str) -> bool:
    if isinstance(value, NumberLiteral):
        if not _INTEGER.fullmatch(value):
            return False
        value = int(value)
    low, high = INTEGER_BOUNDS[of_type]
    return isinstance(value, int) and low <= value <= high


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return value[:_MAX_SHOWN]
    try:
        return str(value)[:_MAX_SHOWN]
    except ValueError:  # more digits than Python converts
        return f"of {value.bit_length()} bits"


def _unmarshal(value: Any, of_type: str, at: _Location) -> None:
    """Raise _UnmarshalerError if a type with its own UnmarshalJSON rejects a value."""
    if of_type == "Quantity":
        message = _quantity_error(value)
    elif isinstance(value, str) and not isinstance(value, NumberLiteral):
        message = ""
    else:
        go = "int32" if of_type == "IntOrString" else "str"
        mismatch = _mismatch(value, go)
        message = _mismatch_error(mismatch, plain_go_type(go), at) if mismatch else ""
    if message:
        raise _UnmarshalerError(message)


def _quantity_error(value: Any) -> str:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return _NO_FORMAT
    try:
        _read_quantity(Quantity, str(value) if isinstance(value, NumberLiteral) else value)
    except QuantityRangeError as error:
        return str(error)
    except QuantityError as error:
        if not value or not _QUANTITY.fullmatch(str(value).strip(" ")):
            return _NO_FORMAT
        is_suffix = isinstance(error, QuantitySuffixError)
        return f"unable to parse {'quantity' if is_suffix else 'numeric part of quantity'}" + (
            "'s suffix" if is_suffix else ""
        )
    return ""


def _read_quantity(_: type, value: Any) -> Quantity:
    """Parse a quantity on the fast path. Raises QuantityError.

    Quantities that are short only because of their exponent (1e999999999) are rejected: upstream
    does not respond within its deadline, and sums of accepted values must be computable.
    """
    quantity = Quantity.parse(value)
    parts = quantity.parts
    if parts.value and len(str(abs(parts.value))) + parts.scale + _NANO_DIGITS > MAX_DIGITS:
        raise QuantityRangeError(f"quantity {quantity[:80]!r} needs over {MAX_DIGITS} digits")
    return quantity


_UNMARSHALERS: Final = frozenset({"Time", "MicroTime", "IntOrString", "Quantity"})
_SCALARS: Final = {
    "str": "string",
    "bytes": "string",
    "bool": "bool",
    "int32": "number",
    "int64": "number",
}


def _integer(of_type: str) -> Any:
    low, high = INTEGER_BOUNDS[of_type]
    return Annotated[int, msgspec.Meta(ge=low, le=high)]


_SHAPES: Final[dict[str, Any]] = {
    "str": str,
    "bytes": str,
    "bool": bool,
    "int32": _integer("int32"),
    "int64": _integer("int64"),
    "Time": str,
    "MicroTime": str,
    "IntOrString": _integer("int32") | str,
    "Quantity": Quantity,
    "FieldsV1": Any,
}


@cache
def _decoder_type(of_type: str) -> Any:
    """Return a type that msgspec decodes as Go does: values may be null, unknown fields pass."""
    if of_type.startswith("["):
        return list[_decoder_type(of_type[1:-1]) | None]  # type: ignore[misc]
    if of_type.startswith("{"):
        return dict[str, _decoder_type(of_type[1:-1]) | None]  # type: ignore[misc]
    if of_type in _SHAPES:
        return _SHAPES[of_type]
    fields = schema_of(of_type).fields
    names = {f"field_{index}": name for index, name in enumerate(fields)}
    types = [_decoder_type(field.schema.type) for field in fields.values()]
    return msgspec.defstruct(
        of_type,
        [(name, kind | None, None) for name, kind in zip(names, types, strict=True)],
        rename=names,
    )
