"""Conversion of frozen structs to protobuf and back, by a table of field numbers.

    codec = StructCodec(parse_field_table("Range: 1=start:int64 2=end:int64"))
    codec.decode(codec.encode(Range(start=3)), Range)

A struct has the name of its message, after the codec's prefix, and any of its fields under their
names: fields that it does not have are skipped. A field of bytes in place of a message has the
message as it was encoded, to decode it later or never. Zero values are not sent, as in proto3; an
absent message is None. Of a singular field that occurs twice the last one counts, where protobuf
would merge two messages: no encoder produces this.
"""

import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct, structs

from podstatus.kube.encoding.protobuf import wire
from podstatus.kube.encoding.protobuf.field_table import FieldTable, TableField

T = TypeVar("T", bound=Struct)
_Write = Callable[[Any], bytes]
_Read = Callable[[int | bytes], Any]
_Add = Callable[[dict[str, Any], int | bytes], None]


class _ValueCodec(Struct, frozen=True):
    """How single values of a type are written and read."""

    wire_type: int
    write: _Write
    read: _Read


class _StructPlan(Struct, frozen=True):
    """The fields of a struct, prepared for conversion."""

    writers: tuple[tuple[str, _Write], ...]
    """Attributes by number, and how they are written with their tag."""
    readers: Mapping[int, _Add]
    """How a value is added to the attributes that were read before."""


def _integer(read: _Read, low: int, high: int) -> _ValueCodec:
    def write(value: int) -> bytes:
        if not low <= value < high:
            raise ValueError(f"{value} is not between {low} and {high - 1}")
        return wire.encode_varint(value)

    return _ValueCodec(wire.VARINT, write, read)


_STRING: Final = _ValueCodec(wire.LENGTH_DELIMITED, str.encode, wire.decode_str)
_SCALARS: Final = {
    "str": _STRING,
    "bytes": _ValueCodec(wire.LENGTH_DELIMITED, bytes, wire.require_bytes),
    "bool": _ValueCodec(wire.VARINT, wire.encode_varint, wire.decode_bool),
    "int32": _integer(wire.decode_int32, -(2**31), 2**31),
    "enum": _integer(wire.decode_int32, -(2**31), 2**31),
    "int64": _integer(wire.decode_int64, -(2**63), 2**63),
    "uint32": _integer(wire.decode_uint32, 0, 2**32),
    "uint64": _integer(wire.decode_uint64, 0, 2**64),
}


class StructCodec:
    """Converts the messages of one table. Thread-safe."""

    def __init__(self, table: FieldTable, *, prefix: str = "") -> None:
        self._table = table
        self._prefix = prefix
        self._plans: dict[type[Struct], _StructPlan] = {}

    def encode(self, message: Struct) -> bytes:
        """Return the bytes of a message. Raises ValueError if a value does not fit its type."""
        values = (
            (write, getattr(message, name)) for name, write in self._plan(type(message)).writers
        )
        return b"".join(write(value) for write, value in values if value)

    def decode(self, data: bytes, kind: type[T]) -> T:
        """Return the message of a type. Raises MalformedMessageError."""
        readers, values = self._plan(kind).readers, dict[str, Any]()
        for number, value in wire.iter_fields(data):
            add = readers.get(number)
            if add is not None:
                add(values, value)
        for name, value in values.items():
            if value.__class__ is list:
                values[name] = tuple(value)
        return kind(**values)

    def _plan(self, kind: type[Struct]) -> _StructPlan:
        plan = self._plans.get(kind)
        if plan is None:
            plan = self._plans[kind] = self._make_plan(kind)
        return plan

    def _make_plan(self, kind: type[Struct]) -> _StructPlan:
        """Prepare a struct. Raises TypeError if it does not fit the table."""
        hints = typing.get_type_hints(kind)
        rows = self._rows(kind)
        values = {name: self._value_codec(row, hints[name]) for name, row in rows.items()}
        by_number = sorted(rows, key=lambda name: rows[name].number)
        return _StructPlan(
            tuple((name, _writer(rows[name], values[name])) for name in by_number),
            {row.number: _reader(name, row, values[name]) for name, row in rows.items()},
        )

    def _rows(self, kind: type[Struct]) -> dict[str, TableField]:
        message = kind.__name__.removeprefix(self._prefix)
        rows = {row.name: row for row in self._table.get(message, ())}
        names = {field.name: field.encode_name for field in structs.fields(kind)}
        if missing := sorted(set(names.values()) - set(rows)):
            raise TypeError(f"the message {message} of the table has no {', '.join(missing)}")
        return {attribute: rows[name] for attribute, name in names.items()}

    def _value_codec(self, row: TableField, hint: Any) -> _ValueCodec:
        if row.type in _SCALARS:
            return _SCALARS[row.type]
        if bytes in (hint, *typing.get_args(hint)):
            return _SCALARS["bytes"]
        kind = _struct_type(hint)
        if kind is None or kind.__name__ != self._prefix + row.type:
            raise TypeError(f"{row.name} is a {row.type}, not {hint}")
        return _ValueCodec(
            wire.LENGTH_DELIMITED,
            self.encode,
            lambda value: self.decode(wire.require_bytes(value), kind),
        )


def _struct_type(hint: Any) -> type[Struct] | None:
    """Return the struct of `T`, `T | None` or `tuple[T, …]`."""
    for candidate in (hint, *typing.get_args(hint)):
        if isinstance(candidate, type) and issubclass(candidate, msgspec.Struct):
            return candidate
    return None


def _writer(row: TableField, value: _ValueCodec) -> _Write:
    if row.is_map:
        key, item = _tagged(1, _STRING.wire_type, str.encode), _tagged(2, *_written(value))

        def entry(pair: tuple[str, Any]) -> bytes:
            return key(pair[0]) + item(pair[1])

        entries = _repeated(_tagged(row.number, wire.LENGTH_DELIMITED, entry))
        return lambda items: entries(items.items())
    if row.is_list and value.wire_type == wire.VARINT:
        return _tagged(row.number, wire.LENGTH_DELIMITED, _repeated(value.write))
    one = _tagged(row.number, *_written(value))
    return _repeated(one) if row.is_list else one


def _written(value: _ValueCodec) -> tuple[int, _Write]:
    return value.wire_type, value.write


def _repeated(write: _Write) -> Callable[[Iterable[Any]], bytes]:
    return lambda values: b"".join(map(write, values))


def _tagged(number: int, wire_type: int, write: _Write) -> _Write:
    tag = wire.encode_tag(number, wire_type)
    if wire_type == wire.VARINT:
        return lambda value: tag + write(value)

    def frame(value: Any) -> bytes:
        content = write(value)
        return tag + wire.encode_varint(len(content)) + content

    return frame


def _reader(attribute: str, row: TableField, value: _ValueCodec) -> _Add:
    def add(values: dict[str, Any], item: int | bytes) -> None:
        values[attribute] = value.read(item)

    def add_entry(values: dict[str, Any], item: int | bytes) -> None:
        members = dict(wire.iter_fields(wire.require_bytes(item)))
        content = value.read(members[2]) if 2 in members else value.read(_absent(value))
        values.setdefault(attribute, {})[wire.decode_str(members.get(1, b""))] = content

    def append(values: dict[str, Any], item: int | bytes) -> None:
        values.setdefault(attribute, []).append(value.read(item))

    def extend(values: dict[str, Any], item: int | bytes) -> None:
        packed = wire.iter_varints(item) if isinstance(item, bytes) else (item,)
        values.setdefault(attribute, []).extend(map(value.read, packed))

    if row.is_map:
        return add_entry
    if not row.is_list:
        return add
    return extend if value.wire_type == wire.VARINT else append


def _absent(value: _ValueCodec) -> int | bytes:
    """Return the wire form of the zero value, which a map entry may omit."""
    return 0 if value.wire_type == wire.VARINT else b""
