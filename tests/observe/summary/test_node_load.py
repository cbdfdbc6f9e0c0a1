"""The load of a node: usage, requests, allocatable and their ratios."""

from typing import Any

import pytest

from podstatus.node.decide.measured_usage import (
    CPU,
    DISK,
    INODES,
    MEMORY,
    PIDS,
    MeasuredUsage,
    NodeUsageSample,
)
from podstatus.observe.ports import NodeSummary
from podstatus.observe.summary.node import with_load
from podstatus.observe.summary.node_load import NodeLoad, ResourceLoad

SECOND = 1_000_000_000
GI = 2.0**30
USED = {CPU: 1.0, MEMORY: 2 * GI, DISK: 30.0, INODES: 5.0, PIDS: 100.0}
CAPACITY = {CPU: 4.0, MEMORY: 8 * GI, DISK: 60.0, INODES: 50.0, PIDS: 1000.0}
NODE = NodeSummary(
    name="n",
    pods=11,
    requested={"cpu": "500m", "memory": "1Gi"},
    allocatable={"cpu": "2", "memory": "4Gi", "pods": "110", "ephemeral-storage": "1"},
    capacity={"cpu": "4", "memory": "8Gi", "pods": "220"},
)


def usage(seconds: int = 20) -> MeasuredUsage:
    measured = MeasuredUsage()
    for at in range(0, seconds + 1, 10):
        measured = measured.add(NodeUsageSample(at=at * SECOND, used=USED, capacity=CAPACITY))
    return measured


def load(*, now: int = 20, measured: MeasuredUsage | None = None, **node: Any) -> NodeLoad:
    changed = NodeSummary(**({it: getattr(NODE, it) for it in NODE.__struct_fields__} | node))
    return with_load(changed, usage() if measured is None else measured, now * SECOND).load


def amounts(resource: ResourceLoad) -> tuple[float | None, ...]:
    return (
        resource.used,
        resource.requested,
        resource.allocatable,
        resource.used_fraction,
        resource.requested_fraction,
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (CPU, (1.0, 0.5, 2.0, 0.5, 0.25)),
        (MEMORY, (2 * GI, GI, 4 * GI, 0.5, 0.25)),
        (DISK, (30.0, None, 60.0, 0.5, None)),
        (INODES, (5.0, None, 50.0, 0.1, None)),
        (PIDS, (100.0, None, 1000.0, 0.1, None)),
        ("pods", (11.0, None, 110.0, 0.1, None)),
    ],
)
def test_fractions_are_of_what_is_allocatable(name: str, expected: tuple[float | None]) -> None:
    assert amounts(load().by_resource()[name]) == expected


def test_without_allocatable_it_is_the_capacity_and_then_the_measured_one() -> None:
    assert load(allocatable={}).memory.allocatable == 8 * GI
    assert load(allocatable={}, capacity={}).memory.allocatable == 8 * GI
    assert load(allocatable={}, capacity={}).pods == ResourceLoad(used=11.0)


@pytest.mark.parametrize("amount", ["0", "-1"])
def test_a_fraction_of_nothing_is_unknown(amount: str) -> None:
    assert load(allocatable={"cpu": amount}).cpu.used_fraction is None


def test_an_amount_that_is_too_large_for_a_number_is_unknown() -> None:
    assert (
        load(allocatable={"cpu": "1e9999"}, requested={"cpu": "1e9999"}).cpu
        == load(allocatable={}, requested={}).cpu
    )


def test_usage_may_exceed_what_is_allocatable_for_pods() -> None:
    assert load(allocatable={"cpu": "500m"}).cpu.used_fraction == 2.0


def test_averages_have_the_fraction_and_the_time_they_cover() -> None:
    averages = load().memory.averages
    assert averages.keys() == {"1m", "5m", "15m"}
    assert averages["15m"].used == pytest.approx(2 * GI)
    assert averages["15m"].used_fraction == pytest.approx(0.5)
    assert averages["15m"].covered_seconds == pytest.approx(20.0)


def test_before_the_first_sample_requests_and_pods_are_known() -> None:
    unmeasured = load(measured=MeasuredUsage())
    assert amounts(unmeasured.cpu) == (None, 0.5, 2.0, None, 0.25)
    assert (unmeasured.pods.used, unmeasured.age_seconds) == (11.0, None)


def test_in_a_gap_the_usage_is_unknown_not_zero() -> None:
    in_gap = load(now=140)
    assert amounts(in_gap.cpu) == (None, 0.5, 2.0, None, 0.25)
    assert in_gap.disk.allocatable == 60.0
    assert in_gap.age_seconds == 120.0
    assert in_gap.cpu.averages["15m"].used_fraction == pytest.approx(0.5)
    assert in_gap.cpu.averages["15m"].covered_seconds < 20


def test_the_summary_repeats_the_known_amounts() -> None:
    summary = with_load(NODE, usage(), 20 * SECOND)
    assert summary.used == USED | {"pods": 11.0}
    assert summary.used_fractions == {
        CPU: 0.5, MEMORY: 0.5, DISK: 0.5, INODES: 0.1, PIDS: 0.1, "pods": 0.1,
    }  # fmt: skip
