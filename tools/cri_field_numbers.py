"""Write the table of field numbers of CRI from its api.proto.

    python tools/cri_field_numbers.py …/k8s.io/cri-api@v0.36.4/pkg/apis/runtime/v1/api.proto

The module of the table is replaced; a test compares it with api.proto, where there is one. Messages
of Windows and deprecated fields are left out.
"""

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

MODULE = Path(__file__).parents[1] / "src/podstatus/runtime/cri/api/field_numbers.py"
_SCALARS = ("bytes", "bool", "double", "int32", "int64", "uint32", "uint64")
_HEADER = '''\
"""Field numbers and enums of CRI v1, written by tools/cri_field_numbers.py from api.proto.

Upstream: pkg/apis/runtime/v1/api.proto, cri-api v0.36.4.
"""

from typing import Final

'''
_COMMENT = re.compile(r"//[^\n]*")
_BLOCK = re.compile(r"^(message|enum) (\w+) ?\{(?:\s*\}|(.*?)^\})", re.MULTILINE | re.DOTALL)
_NESTED_ENUM = re.compile(r"enum (\w+) \{([^}]*)\}")
_FIELD = re.compile(r"(repeated )?(map<string, ?\w+>|\w+) (\w+) *= *(\d+) *(\[[^]]*\])?;")
_VALUE = re.compile(r"(\w+) *= *(\d+);")


def module_text(proto: str) -> str:
    """Return the module for the text of an api.proto."""
    bare = _COMMENT.sub("", proto)
    blocks = [(kind, name, body) for kind, name, body in _BLOCK.findall(bare)]
    enums = {name: body for kind, name, body in blocks if kind == "enum"}
    enums |= dict(nested for _, _, body in blocks for nested in _NESTED_ENUM.findall(body))
    messages = {
        name: " ".join(_fields(_NESTED_ENUM.sub("", body), set(enums)))
        for kind, name, body in blocks
        if kind == "message" and "Windows" not in name
    }
    values = {
        name: " ".join(f"{number}={value}" for value, number in _VALUE.findall(body))
        for name, body in enums.items()
    }
    return f"{_HEADER}MESSAGES: Final = {_table(messages)}\nENUMS: Final = {_table(values)}"


def _fields(body: str, enums: set[str]) -> Iterator[str]:
    for repeated, kind, name, number, options in _FIELD.findall(body):
        if "Windows" in kind or "deprecated=true" in options:
            continue
        element = re.split(r"[, >]+", kind)[1] if kind.startswith("map") else kind
        short = _short(element, enums)
        if repeated:
            short = f"[{short or 'str'}]"
        elif kind.startswith("map"):
            short = f"{{{short or 'str'}}}"
        yield f"{number}={name}:{short}" if short else f"{number}={name}"


def _short(kind: str, enums: set[str]) -> str:
    """Return the type as the table has it; a string is the default."""
    if kind == "string":
        return ""
    return "enum" if kind in enums else kind


def _table(rows: dict[str, str]) -> str:
    lines = (f"{name}: {fields}" for name, fields in sorted(rows.items()) if fields)
    wrapped = (
        textwrap.fill(
            line, 100, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
        for line in lines
    )
    return '"""\n' + "\n".join(wrapped) + '\n"""\n'


if __name__ == "__main__":
    MODULE.write_text(module_text(Path(sys.argv[1]).read_text()))
