"""The Go types as recorded, and ours described in the same way."""

import types
import typing
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from podstatus.kube.encoding.wire_struct import Wire
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.scalars.time import Time

RECORDED = Path(__file__).parents[2] / "conformance" / "types.json"


GO_TYPES: dict[str, list[dict[str, Any]]] = msgspec.json.decode(RECORDED.read_bytes())


_GO_NAMES = {name.rpartition(".")[2]: name for name in GO_TYPES}
SCALARS = {str: "str", int: "int", bool: "bool", Time: "Time", Quantity: "Quantity"}


def go_name(kind: type[Wire]) -> str:
    return _GO_NAMES[kind.__name__]


def described(declared: Any) -> str:
    """Return a declared type in the notation of types.json; a nil list or map is no pointer."""
    origin = typing.get_origin(declared)
    if origin is tuple:
        return f"[{described(typing.get_args(declared)[0])}]"
    if origin is dict:
        assert typing.get_args(declared)[0] is str
        return f"{{{described(typing.get_args(declared)[1])}}}"
    if origin in (typing.Union, types.UnionType):
        kinds = [kind for kind in typing.get_args(declared) if kind is not type(None)]
        if len(kinds) > 1:
            return "any"  # a number or a name
        inner = described(kinds[0])
        return inner if inner[0] in "[{" else f"{inner}?"
    if declared is Any:
        return "any?"
    return SCALARS.get(declared) or go_name(declared)


def always_printed(info: structs.FieldInfo) -> bool:
    return info.default_factory is not msgspec.NODEFAULT


def go_always_prints(field: dict[str, Any]) -> bool:
    """Return whether it has no omitempty, or is a struct, which is never empty."""
    if field.get("omitzero"):
        return False
    struct = field["type"] in GO_TYPES or field["type"] in ("Time", "Quantity")
    return struct or not field.get("omitempty")
