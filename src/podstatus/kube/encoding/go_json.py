"""Plain JSON values with the equality, text and encoding of Go.

In Python, True, 1 and 1.0 are equal; Go distinguishes bool, int64 and float64, as this module does.
"""

from collections.abc import Iterable
from decimal import Decimal
from enum import Enum
from json.encoder import encode_basestring
from typing import Final, TypeAlias

import msgspec

from podstatus.kube.scalars.go_text import valid_text

JsonValue: TypeAlias = bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"] | None
Document: TypeAlias = dict[str, JsonValue]


class Absent(Enum):
    """Marks an absent value, where null is an ordinary value."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT

_HTML = [(char.encode(), f"\\u{ord(char):04x}".encode()) for char in "<>&"]
_LINE_ENDS = [(char.encode(), f"\\u{ord(char):04x}".encode()) for char in "\u2028\u2029"]


def go_equal(left: JsonValue, right: JsonValue) -> bool:
    """Return whether two values are equal, including the types of numbers (reflect.DeepEqual)."""
    return left == right and _same_types(left, right)


def _same_types(left: JsonValue, right: JsonValue) -> bool:
    """Return whether two values that are equal in Python have the same types throughout."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key, value in left.items():
            # A string equals only a string, so only other values have to be checked.
            if type(value) is not str and not _same_types(value, right[key]):
                return False
        return True
    if isinstance(left, list) and isinstance(right, list):
        return all(map(_same_types, left, right))
    return type(left) is type(right)


def go_format_v(value: JsonValue) -> str:
    """Return the value as Go's `%v` prints it."""
    if isinstance(value, str):
        return value
    if value is None:
        return "<nil>"
    if isinstance(value, float):
        return _format_float_v(value)
    if isinstance(value, list):
        return f"[{' '.join(map(go_format_v, value))}]"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_format_v(value[key])}' for key in sorted(value))}]"
    return str(value).lower()


def encode_document(document: Document) -> bytes:
    """Encode as Go's json.Marshal does: keys sorted, compact, HTML characters escaped."""
    data = _encode_fast(document) or valid_text(_encode(document)).encode()
    for special, escaped in _HTML if data.isascii() else _HTML + _LINE_ENDS:
        if special in data:
            data = data.replace(special, escaped)
    return data


def _encode_fast(document: Document) -> bytes:
    """Encode with msgspec; empty if msgspec rejects a value or differs from Go."""
    if _contains_float(document):
        return b""
    try:
        return msgspec.json.encode(document, order="sorted")
    except UnicodeEncodeError:
        return b""


def _contains_float(value: JsonValue) -> bool:
    if isinstance(value, dict):
        items: Iterable[JsonValue] = value.values()
    elif isinstance(value, list):
        items = value
    else:
        return isinstance(value, float) or (isinstance(value, int) and _is_float(value))
    # A loop with the cheapest checks first, since it runs for every patch that is sent.
    for item in items:  # noqa: SIM110 - see above
        if type(item) not in _NEVER_FLOATS and _contains_float(item):
            return True
    return False


_NEVER_FLOATS = frozenset({str, bool, type(None)})


def _is_float(value: int) -> bool:
    """Return whether Kubernetes decodes the number as a float, since it exceeds 64 bits."""
    return not -(2**63) <= value < 2**63


def _encode(value: JsonValue) -> str:
    if isinstance(value, str):
        return encode_basestring(value)
    if isinstance(value, dict):
        return f"{{{','.join(f'{_encode(key)}:{_encode(value[key])}' for key in sorted(value))}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_encode, value))}]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float) or _is_float(value):
        return _encode_float(float(value))
    return str(value)


def _encode_float(value: float) -> str:
    digits = repr(value)
    if value == 0 or 1e-6 <= abs(value) < 1e21:
        return f"{Decimal(digits):f}".removesuffix(".0")
    mantissa, exponent = digits.split("e")
    return f"{mantissa}e{int(exponent):+d}"


def _format_float_v(value: float) -> str:
    digits = Decimal(repr(value)).normalize()
    if -4 <= digits.adjusted() < 6:
        return f"{digits:f}"
    return f"{value:.{len(digits.as_tuple().digits) - 1}e}"
