"""The Node types equal their Go types, as recorded in types.json."""

import typing

import pytest
from msgspec import structs

from podstatus.kube.encoding.wire_struct import Wire
from podstatus.kube.objects import node
from tests.kube.objects.go_types import (
    GO_TYPES,
    always_printed,
    described,
    go_always_prints,
    go_name,
)

KINDS = [
    kind
    for kind in vars(node).values()
    if isinstance(kind, type) and issubclass(kind, Wire) and kind.__module__ == node.__name__
]


@pytest.mark.parametrize("kind", KINDS, ids=go_name)
def test_fields_have_the_names_types_and_order_of_go(kind: type[Wire]) -> None:
    hints = typing.get_type_hints(kind)
    fields = [
        (info.encode_name, described(hints[info.name]), always_printed(info))
        for info in structs.fields(kind)
    ]
    recorded = GO_TYPES[go_name(kind)]
    assert fields == [(f["name"], f["type"], go_always_prints(f)) for f in recorded]
