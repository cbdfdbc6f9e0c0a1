"""Strategic merge patches of long lists take linear time, with the same results.

The bound detects quadratic growth, not a slow machine: each of these took from half a minute to
minutes.
"""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.kube.encoding.go_json import ABSENT, JsonValue
from podstatus.kube.patch import apply_patch
from podstatus.kube.patch.errors import PatchError
from podstatus.kube.patch.lists import Positions, deduplicate, same_scalar
from podstatus.kube.patch.schema import POD

SECONDS = 10.0
LENGTH = 20_000
NAMES = [f"n{number}" for number in range(LENGTH)]
OTHERS = [f"o{number}" for number in range(LENGTH)]
CONTAINERS = {"spec": {"containers": [{"name": name} for name in NAMES]}}


def with_ports() -> dict[str, Any]:
    ports = [{"containerPort": number} for number in range(LENGTH)]
    return {"spec": {"containers": [{"name": "a", "ports": ports}]}}


@pytest.mark.parametrize(
    ("live", "patch", "length"),
    [
        (with_ports(), with_ports(), LENGTH),
        (
            CONTAINERS,
            {"spec": {"containers": [{"name": name, "$patch": "delete"} for name in NAMES]}},
            0,
        ),
        (
            CONTAINERS,
            {"spec": {"$setElementOrder/containers": [{"name": name} for name in NAMES[::-1]]}},
            LENGTH,
        ),
        ({"metadata": {"finalizers": NAMES}}, {"metadata": {"finalizers": OTHERS}}, 2 * LENGTH),
        (
            {"metadata": {"finalizers": NAMES}},
            {"metadata": {"$deleteFromPrimitiveList/finalizers": NAMES[1:]}},
            1,
        ),
        (
            {"metadata": {"finalizers": NAMES}},
            {"metadata": {"$setElementOrder/finalizers": OTHERS, "finalizers": OTHERS}},
            2 * LENGTH,
        ),
    ],
    ids=["ports", "deletions", "order", "scalars", "deleted scalars", "order of scalars"],
)
def test_long_lists_are_merged_in_linear_time(
    live: dict[str, Any], patch: dict[str, Any], length: int
) -> None:
    began = time.process_time()
    patched: Any = apply_patch(live, patch, POD)
    assert time.process_time() - began < SECONDS
    (part,) = patched.values()
    (elements,) = part.values()
    if elements and "ports" in elements[0]:
        elements = elements[0]["ports"]
    assert len(elements) == length


def _deduplicated_by_comparison(
    scalars: list[JsonValue],
) -> tuple[list[JsonValue], list[JsonValue]]:
    """Deduplicate as upstream does: compare each element with all that follow."""
    slots, end, at = list(scalars), len(scalars), 0
    while at < end:
        other = at + 1
        while other < end:
            if slots[at] == slots[other]:
                end -= 1
                slots[other] = slots[end]
            else:
                other += 1
        at += 1
    return slots[:end], slots


@given(st.lists(st.sampled_from("abcdef"), max_size=20))
def test_repetitions_are_removed_as_upstream_does(scalars: list[JsonValue]) -> None:
    assert deduplicate(scalars) == _deduplicated_by_comparison(scalars)


VALUES = st.sampled_from([True, False, 0, 1, 0.0, 1.0, None, "", "1", ABSENT])


@given(st.lists(VALUES, max_size=8), VALUES.filter(lambda value: value is not ABSENT))
def test_an_identity_is_found_by_type_and_value(listed: list[Any], value: JsonValue) -> None:
    same = [at for at, other in enumerate(listed) if same_scalar(value, other)]
    assert Positions(listed).find(value) == (same[0] if same else -1)


def test_objects_are_no_identities() -> None:
    positions = Positions([{}, 1])
    assert positions.find([]) == -1
    with pytest.raises(PatchError, match="only a scalar"):
        positions.find({"a": 1})
