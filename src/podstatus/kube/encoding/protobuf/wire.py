"""The wire format of protobuf: varints, tags, and the fields of a message.

Every function is linear in the size of its input; nothing is allocated by a length that the input
only claims to have.
"""

from collections.abc import Iterator
from typing import Final

VARINT: Final = 0
LENGTH_DELIMITED: Final = 2
_FIXED_SIZES: Final = {1: 8, 5: 4}
_MAX_UINT64: Final = 2**64 - 1


class MalformedMessageError(ValueError):
    """The bytes are not a message of the expected type."""


def iter_fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of each field: varints as unsigned int, everything else as bytes.

    Raises MalformedMessageError.
    """
    position, end = 0, len(data)
    while position < end:
        tag, position = decode_varint(data, position)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == VARINT:
            value, position = decode_varint(data, position)
            yield number, value
            continue
        if wire_type == LENGTH_DELIMITED:
            length, position = decode_varint(data, position)
        elif wire_type in _FIXED_SIZES:
            length = _FIXED_SIZES[wire_type]
        else:
            raise MalformedMessageError(f"unknown wire type {wire_type}")
        if position + length > end:
            raise MalformedMessageError("unexpected end of data")
        yield number, data[position : position + length]
        position += length


def iter_varints(data: bytes) -> Iterator[int]:
    """Yield the unsigned values of a packed list. Raises MalformedMessageError."""
    position = 0
    while position < len(data):
        value, position = decode_varint(data, position)
        yield value


def decode_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return the unsigned value at a position, and the position after it.

    Raises MalformedMessageError.
    """
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(data):
            raise MalformedMessageError("unexpected end of data")
        byte = data[position]
        position += 1
        if byte < 0x80:
            return (value | byte << shift) & _MAX_UINT64, position
        value |= (byte & 0x7F) << shift
    raise MalformedMessageError("a varint is too long")


def encode_varint(value: int) -> bytes:
    """Encode an integer; a negative one takes ten bytes. Raises ValueError beyond 64 bits."""
    if not -(2**63) <= value <= _MAX_UINT64:
        raise ValueError(f"{value} does not fit into 64 bits")
    rest = value & _MAX_UINT64
    digits = bytearray()
    while rest > 0x7F:
        digits.append(rest & 0x7F | 0x80)
        rest >>= 7
    digits.append(rest)
    return bytes(digits)


def encode_tag(number: int, wire_type: int) -> bytes:
    """Encode what precedes the value of a field."""
    return encode_varint(number << 3 | wire_type)


def require_bytes(value: int | bytes) -> bytes:
    """Return a value that is not a varint. Raises MalformedMessageError."""
    if isinstance(value, int):
        raise MalformedMessageError("expected bytes, got a varint")
    return value


def decode_str(value: int | bytes) -> str:
    """Decode a string. Raises MalformedMessageError."""
    try:
        return require_bytes(value).decode()
    except UnicodeDecodeError as error:
        raise MalformedMessageError("a string is not UTF-8") from error


def decode_uint64(value: int | bytes) -> int:
    """Return the value of a varint. Raises MalformedMessageError."""
    if isinstance(value, bytes):
        raise MalformedMessageError("expected a varint, got bytes")
    return value


def decode_int64(value: int | bytes) -> int:
    """Return the signed value of a varint. Raises MalformedMessageError."""
    unsigned = decode_uint64(value)
    return unsigned - 2**64 if unsigned >= 2**63 else unsigned


def decode_int32(value: int | bytes) -> int:
    """Truncate a varint to 32 bits, as all decoders do. Raises MalformedMessageError."""
    return (decode_uint64(value) + 2**31) % 2**32 - 2**31


def decode_uint32(value: int | bytes) -> int:
    """Truncate a varint to 32 bits without sign. Raises MalformedMessageError."""
    return decode_uint64(value) % 2**32


def decode_bool(value: int | bytes) -> bool:
    """Return whether a varint is not zero. Raises MalformedMessageError."""
    return decode_uint64(value) != 0
