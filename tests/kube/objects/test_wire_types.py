"""Every wire type is printed as its Go type, as recorded in types.json.

tests/kube/patch/test_schema.py compares the names, the types and the order of the fields.
"""

import typing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs

from podstatus.kube.encoding.wire_struct import Wire
from podstatus.kube.objects.event import Event
from podstatus.kube.objects.node import Node
from podstatus.kube.objects.pod import Pod
from podstatus.kube.scalars.quantity import Quantity

RECORDED = Path(__file__).parents[2] / "conformance" / "types.json"
GO_TYPES: dict[str, list[dict[str, Any]]] = msgspec.json.decode(RECORDED.read_bytes())


def wires_in(declared: Any) -> list[type[Wire]]:
    if isinstance(declared, type) and issubclass(declared, Wire):
        return [declared]
    return [wire for argument in typing.get_args(declared) for wire in wires_in(argument)]


WIRE_TYPES: list[type[Wire]] = [Pod, Node, Event]
for _kind in WIRE_TYPES:  # grows during the iteration
    _below = [wire for hint in typing.get_type_hints(_kind).values() for wire in wires_in(hint)]
    WIRE_TYPES += dict.fromkeys(wire for wire in _below if wire not in WIRE_TYPES)


def test_pods_nodes_and_events_are_made_of_all_recorded_types_and_no_others() -> None:
    names = sorted(name.rpartition(".")[2] for name in GO_TYPES)
    assert sorted(kind.__name__ for kind in WIRE_TYPES) == names


def always_printed(info: structs.FieldInfo) -> bool:
    return info.default_factory is not msgspec.NODEFAULT


def go_always_prints(field: dict[str, Any]) -> bool:
    """Return whether it has no omitempty, or is a struct, which is never empty."""
    if field.get("omitzero"):
        return False
    struct = field["type"] in GO_TYPES or field["type"] in ("Time", "MicroTime", "Quantity")
    return struct or not field.get("omitempty")


@pytest.mark.parametrize("kind", WIRE_TYPES)
def test_fields_are_printed_when_go_prints_them(kind: type[Wire]) -> None:
    (recorded,) = (GO_TYPES[name] for name in GO_TYPES if name.endswith(f".{kind.__name__}"))
    fields = {info.encode_name: always_printed(info) for info in structs.fields(kind)}
    assert fields == {field["name"]: go_always_prints(field) for field in recorded}


@pytest.mark.parametrize("kind", WIRE_TYPES)
def test_defaults_are_the_zero_values_of_go(kind: type[Wire]) -> None:
    hints = typing.get_type_hints(kind)
    for info in structs.fields(kind):
        zero = info.default_factory() if always_printed(info) else info.default
        assert zero == zero_of(hints[info.name]), info.name


def zero_of(declared: Any) -> object:
    if declared is Any or type(None) in typing.get_args(declared):
        return None
    if typing.get_args(declared):
        return 0  # a number or a name
    return Quantity("0") if declared is Quantity else declared()
