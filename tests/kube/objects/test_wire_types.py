"""Every wire type equals its Go type, as recorded in types.json."""

import typing
from typing import Any

import pytest
from msgspec import structs

from podstatus.kube.encoding.wire_struct import Wire
from podstatus.kube.objects.pod import Pod
from podstatus.kube.scalars.quantity import Quantity
from tests.kube.objects.go_types import (
    GO_TYPES,
    always_printed,
    described,
    go_always_prints,
    go_name,
)


def wire_types() -> dict[str, type[Wire]]:
    """Return all types that a Pod consists of, by the names of their Go types."""
    types_by_name: dict[str, type[Wire]] = {}
    waiting: list[type[Wire]] = [Pod]
    while waiting:
        kind = waiting.pop()
        name = go_name(kind)
        if name in types_by_name:
            assert types_by_name[name] is kind
            continue
        types_by_name[name] = kind
        for declared in typing.get_type_hints(kind).values():
            waiting.extend(wires_in(declared))
    return types_by_name


def wires_in(declared: Any) -> list[type[Wire]]:
    if isinstance(declared, type) and issubclass(declared, Wire):
        return [declared]
    return [wire for argument in typing.get_args(declared) for wire in wires_in(argument)]


def zero_value(info: structs.FieldInfo) -> object:
    return info.default_factory() if always_printed(info) else info.default


WIRE_TYPES = wire_types()
PER_TYPE = pytest.mark.parametrize("name", sorted(WIRE_TYPES))


def test_a_pod_is_made_of_all_recorded_types_and_no_others() -> None:
    reachable: set[str] = set()
    waiting = ["v1.Pod"]
    while waiting:
        name = waiting.pop()
        if name not in reachable:
            reachable.add(name)
            kinds = (field["type"].strip("[]{}?") for field in GO_TYPES[name])
            waiting.extend(kind for kind in kinds if kind in GO_TYPES)
    assert set(WIRE_TYPES) == reachable


@PER_TYPE
def test_fields_have_the_names_types_and_order_of_go_and_are_printed_when_go_prints(
    name: str,
) -> None:
    hints = typing.get_type_hints(WIRE_TYPES[name])
    fields = [
        (info.encode_name, described(hints[info.name]), always_printed(info))
        for info in structs.fields(WIRE_TYPES[name])
    ]
    assert fields == [(f["name"], f["type"], go_always_prints(f)) for f in GO_TYPES[name]]


@PER_TYPE
def test_defaults_are_the_zero_values_of_go(name: str) -> None:
    hints = typing.get_type_hints(WIRE_TYPES[name])
    for info in structs.fields(WIRE_TYPES[name]):
        assert zero_value(info) == zero_of(hints[info.name]), info.name


def zero_of(declared: Any) -> object:
    if declared is Any or type(None) in typing.get_args(declared):
        return None
    if typing.get_args(declared):
        return 0  # a number or a name
    return Quantity("0") if declared is Quantity else declared()
