"""Tables of field numbers, one message per row.

    Mount: 1=container_path 3=readonly:bool 9=image:ImageSpec 10=hosts:[str] 11=labels:{str}

A field without a type is a string; `[…]` is a list, `{…}` a map with string keys. `?` is a pointer
of Go's API types, whose zero value is not the same as none. A row may go on in lines that are
indented.
"""

import re
from collections.abc import Mapping

import msgspec


class TableField(msgspec.Struct, frozen=True, kw_only=True):
    """A field of a message."""

    number: int
    name: str
    type: str
    """`str`, `bytes`, `bool`, `int32`, …, `enum`, or the name of a message."""
    is_list: bool = False
    is_map: bool = False
    is_pointer: bool = False


FieldTable = Mapping[str, tuple[TableField, ...]]
"""The fields of each message."""


def parse_field_table(text: str) -> FieldTable:
    """Return the fields of each row."""
    rows = (row.partition(":") for row in re.sub(r"\n\s+", " ", text.strip("\n")).splitlines())
    return {name: tuple(map(_parse_field, fields.split())) for name, _, fields in rows}


def _parse_field(text: str) -> TableField:
    number, _, rest = text.partition("=")
    name, _, type_name = rest.partition(":")
    bare = type_name.removesuffix("?")
    return TableField(
        number=int(number),
        name=name,
        type=bare.strip("[]{}") or "str",
        is_list=bare.startswith("["),
        is_map=bare.startswith("{"),
        is_pointer=type_name.endswith("?"),
    )
