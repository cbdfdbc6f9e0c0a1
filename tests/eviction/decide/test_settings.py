"""Thresholds from settings: defaults, errors, containerfs, and what is not allocatable."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.eviction.decide.model import EvictionThreshold, FilesystemLayout, ThresholdValue
from podstatus.eviction.decide.settings import (
    DEFAULT_EVICTION_HARD,
    hard_eviction_reservation,
    merge_default_eviction_hard,
    parse_threshold_config,
    with_containerfs_thresholds,
)
from podstatus.kube.scalars.quantity import Quantity

TEXTS = st.one_of(
    st.text(max_size=8),
    st.from_regex(r"-?[0-9]{1,4}(\.[0-9]{1,3})?(e[0-9]{1,3})?(%|Ki|m|s|)", fullmatch=True),
)
SETTINGS = st.dictionaries(
    st.sampled_from([*DEFAULT_EVICTION_HARD, "pid.available", "cpu"]), TEXTS, max_size=3
)


def threshold(signal: str, amount: str, grace_period: int = 0) -> EvictionThreshold:
    value = ThresholdValue(quantity=Quantity(amount))
    return EvictionThreshold(signal=signal, value=value, grace_period=grace_period)


@pytest.mark.parametrize(
    ("hard", "merge", "expected"),
    [
        (None, False, DEFAULT_EVICTION_HARD),
        (None, True, DEFAULT_EVICTION_HARD),
        ({}, False, {}),
        ({}, True, DEFAULT_EVICTION_HARD),
        ({"pid.available": "1"}, False, {"pid.available": "1"}),
        (
            {"memory.available": "1Gi", "pid.available": "1"},
            True,
            {**DEFAULT_EVICTION_HARD, "memory.available": "1Gi", "pid.available": "1"},
        ),
    ],
)
def test_defaults_fill_an_absent_setting_or_are_merged_on_request(
    hard: dict[str, str] | None, merge: bool, expected: dict[str, str]
) -> None:
    assert merge_default_eviction_hard(hard, merge=merge) == expected


def test_all_errors_are_reported_at_once_with_what_to_do() -> None:
    with pytest.raises(ValueError, match="use one of") as raised:
        parse_threshold_config(
            hard={"cpu": "1", "memory.available": "0"},
            soft={"pid.available": "5%", "nodefs.available": "120%"},
            soft_grace_period={"nodefs.available": "-1s"},
            minimum_reclaim={"nodefs.available": "lots"},
        )
    errors = str(raised.value).split("; ")
    for part in (
        "evictionHard: unknown eviction signal 'cpu'; use one of memory.available, ",
        "evictionHard[memory.available]: 0 is not positive; use 0%",
        "evictionSoft[nodefs.available]: 120% is out of range; use 0% to 100%",
        "evictionSoftGracePeriod[nodefs.available]: -1s is negative; use 0s or more",
        "evictionMinimumReclaim[nodefs.available]: quantity 'lots' has suffix 'lots'",
        "without a grace period; set evictionSoftGracePeriod[pid.available]",
    ):
        assert part in "; ".join(errors)


@given(SETTINGS, SETTINGS, SETTINGS, SETTINGS)
def test_any_text_is_parsed_or_refused_with_a_value_error(
    hard: dict[str, str], soft: dict[str, str], periods: dict[str, str], reclaim: dict[str, str]
) -> None:
    with suppress(ValueError):
        thresholds = parse_threshold_config(
            hard=hard, soft=soft, soft_grace_period=periods, minimum_reclaim=reclaim
        )
        assert {it.signal for it in thresholds} <= {*hard, *soft, "allocatableMemory.available"}


@pytest.mark.parametrize("text", ["NaN%", "inf%", "0x1p-2%", "1_0%", " 5%"])
def test_a_percentage_is_a_decimal_number(text: str) -> None:
    with pytest.raises(ValueError, match="is not a percentage"):
        parse_threshold_config(hard={"memory.available": text})


@pytest.mark.parametrize("setting", ["0%", "100%"])
def test_two_percentages_switch_a_signal_off(setting: str) -> None:
    assert parse_threshold_config(hard={"memory.available": setting}) == ()


@pytest.mark.parametrize(
    ("layout", "source"),
    [
        (FilesystemLayout(), "nodefs"),
        (FilesystemLayout(dedicated_imagefs=True), "imagefs"),
        (FilesystemLayout(dedicated_imagefs=True, split_containerfs=True), "nodefs"),
    ],
)
def test_containerfs_takes_the_thresholds_of_the_filesystem_of_writable_layers(
    layout: FilesystemLayout, source: str
) -> None:
    thresholds = (
        threshold("nodefs.available", "1"),
        threshold("nodefs.available", "2", grace_period=9),
        threshold("imagefs.available", "3"),
        threshold("imagefs.available", "4", grace_period=9),
        threshold("containerfs.available", "5"),
        threshold("containerfs.inodesFree", "6", grace_period=9),
    )
    derived = with_containerfs_thresholds(thresholds, layout)[4:]
    amounts = ("1", "2") if source == "nodefs" else ("3", "4")
    assert derived == (
        threshold("containerfs.available", amounts[0]),
        threshold("containerfs.available", amounts[1], grace_period=9),
    )


def test_hard_thresholds_of_memory_and_nodefs_are_not_allocatable() -> None:
    hard = parse_threshold_config(hard=DEFAULT_EVICTION_HARD, enforce_node_allocatable=())
    capacity = {"memory": Quantity("8Gi"), "ephemeral-storage": Quantity("1000")}
    assert hard_eviction_reservation(hard, capacity) == {
        "memory": Quantity("100Mi"),
        "ephemeral-storage": Quantity("100"),
    }
    assert hard_eviction_reservation(hard, {})["ephemeral-storage"] == Quantity("0")
