"""Pressure over time, in cycles; whole cycles are in test_recorded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from podstatus.eviction.decide.model import (
    EarlyRecovery,
    EvictionConfig,
    EvictionState,
    FilesystemUsage,
    NodeMemoryUsage,
    NodeResourceUsage,
    Observations,
    Thresholds,
)
from podstatus.eviction.decide.observations import make_signal_observations
from podstatus.eviction.decide.pressure import update_pressure
from podstatus.eviction.decide.settings import parse_threshold_config

SECOND = 1_000_000_000
DISK = EvictionConfig(thresholds=parse_threshold_config(hard={"nodefs.available": "10%"}))


def disk(available: int, at: int | None = None) -> Observations:
    usage = FilesystemUsage(available_bytes=available, capacity_bytes=100, at=at)
    return make_signal_observations(NodeResourceUsage(nodefs=usage))


def memory(available: int, at: int | None = None) -> Observations:
    usage = NodeMemoryUsage(available_bytes=available, working_set_bytes=100 - available, at=at)
    return make_signal_observations(NodeResourceUsage(memory=usage))


def conditions(config: EvictionConfig, *readings: tuple[int, Observations]) -> tuple[str, ...]:
    """The conditions after readings at these seconds."""
    state = EvictionState()
    for seconds, observations in readings:
        state, _ = update_pressure(state, config, observations, seconds * SECOND)
    return state.node_conditions


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0, ("DiskPressure",)), (299, ("DiskPressure",)), (300, ())]
)
def test_a_pressure_persists_for_the_transition_period(
    seconds: int, expected: tuple[str, ...]
) -> None:
    assert conditions(DISK, (0, disk(9)), (seconds, disk(90))) == expected


@pytest.mark.parametrize(
    ("available", "seconds", "expected"),
    [
        (20, 4, ("DiskPressure",)),
        (20, 5, ()),
        (19, 5, ("DiskPressure",)),
        (19, 299, ("DiskPressure",)),
        (19, 300, ()),
    ],
)
def test_disk_pressure_ends_early_when_twice_the_threshold_is_free(
    available: int, seconds: int, expected: tuple[str, ...]
) -> None:
    early = structs.replace(DISK, early_recovery=EarlyRecovery())
    assert conditions(early, (0, disk(9)), (seconds, disk(available))) == expected


def test_memory_pressure_never_ends_early() -> None:
    thresholds = parse_threshold_config(hard={"memory.available": "10%"})
    config = EvictionConfig(thresholds=thresholds, early_recovery=EarlyRecovery())
    assert conditions(config, (0, memory(9)), (299, memory(99))) == ("MemoryPressure",)


def test_an_unknown_amount_is_no_recovery() -> None:
    early = structs.replace(DISK, early_recovery=EarlyRecovery())
    assert conditions(early, (0, disk(9)), (10, {})) == ("DiskPressure",)


def test_pressure_goes_on_until_the_minimum_is_reclaimed() -> None:
    thresholds = parse_threshold_config(
        hard={"nodefs.available": "10%"}, minimum_reclaim={"nodefs.available": "20"}
    )
    state, config = EvictionState(), EvictionConfig(thresholds=thresholds)
    rounds = [(9, True), (29, True), (30, False), (29, False)]
    for second, (available, expected) in enumerate(rounds):
        state, to_reclaim = update_pressure(state, config, disk(available), second * SECOND)
        assert bool(to_reclaim) == expected, available


def test_a_soft_threshold_waits_for_its_grace_period_and_starts_again_after_a_recovery() -> None:
    thresholds = parse_threshold_config(
        hard={}, soft={"nodefs.available": "10%"}, soft_grace_period={"nodefs.available": "30s"}
    )
    state, config = EvictionState(), EvictionConfig(thresholds=thresholds)
    rounds = [(0, 9, False), (29, 9, False), (30, 9, True), (40, 50, False), (45, 9, False)]
    rounds += [(74, 9, False), (75, 9, True)]
    for seconds, available, expected in rounds:
        state, to_reclaim = update_pressure(state, config, disk(available), seconds * SECOND)
        assert bool(to_reclaim) == expected, seconds


READINGS = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 5)), min_size=1, max_size=8)


@given(READINGS)
def test_no_observation_is_used_for_two_evictions(readings: list[tuple[int, int]]) -> None:
    state, used = EvictionState(), set()
    at = 0
    for second, (available, passed) in enumerate(readings):
        at += passed
        to_reclaim: Thresholds
        state, to_reclaim = update_pressure(state, DISK, disk(available, at), second * SECOND)
        if to_reclaim:
            assert at not in used
            used.add(at)


@given(READINGS)
def test_what_is_met_is_a_condition(readings: list[tuple[int, int]]) -> None:
    state, now = EvictionState(), 0
    for available, passed in readings:
        now += passed * 100 * SECOND
        state, to_reclaim = update_pressure(state, DISK, disk(available), now)
        assert bool(to_reclaim) == (available < 10)
        assert state.node_conditions or available >= 10
