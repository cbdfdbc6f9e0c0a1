"""Capacity and allocatable resources of the node."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from podstatus.kube.scalars.quantity import Quantity
from podstatus.node.decide.capacity import (
    binary_quantity,
    missing_capacity,
    node_allocatable,
    node_capacity,
)
from podstatus.node.settings import NodeSettings
from tests.node.scene import MACHINE

PLAIN = NodeSettings(name="node-c")


def amounts(**texts: str) -> dict[str, Quantity]:
    return {name.replace("_", "-"): Quantity(text) for name, text in texts.items()}


def test_a_node_has_what_its_machine_has() -> None:
    assert node_capacity(PLAIN, MACHINE) == amounts(
        cpu="4", memory="8Gi", ephemeral_storage="100Gi", pods="110"
    )


def test_what_was_set_counts_more() -> None:
    settings = NodeSettings(name="n", capacity=amounts(cpu="2", memory="1Gi", pods="5"))
    assert node_capacity(settings, MACHINE) == amounts(
        cpu="2", memory="1Gi", ephemeral_storage="100Gi", pods="5"
    )


@pytest.mark.parametrize(("per_core", "pods"), [(0, "110"), (10, "40"), (1000, "110")])
def test_pods_may_be_limited_by_core(per_core: int, pods: str) -> None:
    settings = NodeSettings(name="n", pods_per_core=per_core)
    assert node_capacity(settings, MACHINE)["pods"] == pods


def test_pods_get_what_is_not_reserved_nor_kept_free() -> None:
    settings = NodeSettings(
        name="n",
        kube_reserved=amounts(cpu="100m", memory="1Gi"),
        system_reserved=amounts(cpu="150m"),
    )
    capacity = node_capacity(settings, MACHINE)
    assert node_allocatable(
        capacity, settings, lambda _: amounts(memory="100Mi", ephemeral_storage="10Gi")
    ) == amounts(cpu="3750m", memory="7068Mi", ephemeral_storage="90Gi", pods="110")


def test_allocatable_is_never_negative() -> None:
    settings = NodeSettings(name="n", system_reserved=amounts(cpu="9", memory="9Gi"))
    left = node_allocatable(node_capacity(settings, MACHINE), settings)
    assert (left["cpu"], left["memory"]) == ("0", "0")


def test_what_others_offer_is_offered_in_full() -> None:
    capacity = amounts(cpu="4") | {"example.com/gpu": Quantity("2")}
    assert node_allocatable(capacity, PLAIN) == capacity


def test_a_node_that_does_not_know_what_it_has_has_a_problem() -> None:
    machine = structs.replace(MACHINE, disk=None)
    assert missing_capacity(node_capacity(PLAIN, MACHINE), PLAIN) == []
    assert missing_capacity(node_capacity(PLAIN, machine), PLAIN) == [
        "missing node capacity for resources: ephemeral-storage"
    ]
    isolated = NodeSettings(name="n", local_storage_isolation=False)
    capacity = node_capacity(isolated, MACHINE)
    assert "ephemeral-storage" not in capacity
    assert missing_capacity(capacity, isolated) == []
    assert missing_capacity({}, PLAIN) == [
        "missing node capacity for resources: cpu, memory, pods, ephemeral-storage"
    ]


@pytest.mark.parametrize(
    ("number", "spelled"),
    [(0, "0"), (1023, "1023"), (1024, "1Ki"), (8 * 1024**3, "8Gi"), (25_276_518_400, "24684100Ki")],
)
def test_bytes_are_printed_in_the_largest_unit_without_a_fraction(
    number: int, spelled: str
) -> None:
    assert binary_quantity(number) == spelled


@given(st.integers(0, 2**62))
def test_bytes_are_neither_lost_nor_made(number: int) -> None:
    assert binary_quantity(number).nanos == number * 10**9
