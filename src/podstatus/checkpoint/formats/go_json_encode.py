"""Encode values as Go's json.Marshal does."""

import re
from collections.abc import Mapping
from functools import cache
from json.encoder import encode_basestring
from typing import Any

import msgspec
from msgspec import structs

from podstatus.kube.encoding.wire_struct import Wire
from podstatus.kube.scalars.quantity import Quantity

_ESCAPED = re.compile("[<>&\u2028\u2029\ud800-\udfff]")
"""Escaped by Go in addition to what JSON requires: HTML characters and invalid UTF-8."""


def encode_go_json(value: object) -> str:
    """Encode a value as Go does: struct fields in declaration order, map keys sorted."""
    if value is None:
        return "null"
    if isinstance(value, Quantity):
        return _quote(value.canonical)
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, Wire):
        return _encode_members(_encode_fields(value))
    if isinstance(value, Mapping):
        return _encode_members({key: value[key] for key in sorted(value)})
    if isinstance(value, tuple):
        return f"[{','.join(map(encode_go_json, value))}]"
    return str(value)


def _encode_members(members: Mapping[str, Any]) -> str:
    return (
        f"{{{','.join(f'{_quote(key)}:{encode_go_json(item)}' for key, item in members.items())}}}"
    )


def _encode_fields(value: Wire) -> dict[str, Any]:
    """Return the fields by wire name; empty values are omitted if the field is `omitempty`."""
    items = zip(_wire_fields(type(value)), structs.astuple(value), strict=True)
    return {name: item for (name, always), item in items if item or always}


@cache
def _wire_fields(type_: type[Wire]) -> tuple[tuple[str, bool], ...]:
    """Return the wire name of each field, and whether it is always on the wire."""
    return tuple(
        (info.encode_name, info.default_factory is not msgspec.NODEFAULT)
        for info in structs.fields(type_)
    )


def _quote(text: str) -> str:
    return _ESCAPED.sub(_escape, encode_basestring(text))


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    return r"\ufffd" if "\ud800" <= char <= "\udfff" else f"\\u{ord(char):04x}"
