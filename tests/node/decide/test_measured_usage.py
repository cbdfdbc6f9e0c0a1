"""Moving averages of the usage: with the real time between samples, gaps and starts included."""

import math
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.node.decide.measured_usage import (
    CPU,
    MAX_GAP_SECONDS,
    MEMORY,
    WINDOWS,
    MeasuredUsage,
    NodeUsageSample,
)

SECOND = 1_000_000_000
INTERVALS = st.lists(st.floats(0.5, MAX_GAP_SECONDS), min_size=1, max_size=40)
AMOUNTS = st.floats(0.0, 1e12)


def sample(seconds: float, cpu: float | None) -> NodeUsageSample:
    return NodeUsageSample(at=round(seconds * SECOND), used={} if cpu is None else {CPU: cpu})


def measured(*samples: tuple[float, float | None]) -> MeasuredUsage:
    usage = MeasuredUsage()
    for seconds, cpu in samples:
        usage = usage.add(sample(seconds, cpu))
    return usage


def every_ten_seconds(first: int, last: int, cpu: float) -> list[tuple[float, float]]:
    return [(float(at), cpu) for at in range(first, last + 1, 10)]


def averages(usage: MeasuredUsage, now: float) -> dict[str, float]:
    found = usage.averages_at(CPU, round(now * SECOND))
    return {name: it.amount for name, it in found.items() if it.amount is not None}


def covered(usage: MeasuredUsage, now: float) -> dict[str, float]:
    found = usage.averages_at(CPU, round(now * SECOND))
    return {name: round(it.covered_seconds, 3) for name, it in found.items()}


def test_without_two_samples_there_is_no_average() -> None:
    assert averages(measured(), 100) == {}
    assert averages(measured((100, 2.0)), 100) == {}


def test_an_average_starts_with_the_first_amount_and_covers_the_time_since() -> None:
    usage = measured((100, 2.0), (110, 2.0), (140, 2.0))
    assert averages(usage, 140) == pytest.approx({"1m": 2.0, "5m": 2.0, "15m": 2.0})
    assert covered(usage, 140) == {"1m": 40.0, "5m": 40.0, "15m": 40.0}


def test_it_covers_its_window_at_most() -> None:
    usage = measured(*every_ten_seconds(0, 600, 1.0))
    assert covered(usage, 600) == {"1m": 60.0, "5m": 300.0, "15m": 600.0}


def test_after_one_window_a_new_amount_has_the_weight_of_a_load_average() -> None:
    usage = measured(*every_ten_seconds(0, 36_000, 0.0), *every_ten_seconds(36_010, 36_300, 1.0))
    after_300_seconds = {name: 1 - math.exp(-300 / window) for name, window in WINDOWS.items()}
    assert averages(usage, 36_300) == pytest.approx(after_300_seconds, abs=1e-6)


@given(INTERVALS, AMOUNTS)
def test_the_average_of_a_constant_is_that_constant(intervals: list[float], cpu: float) -> None:
    times = list(accumulate(intervals, initial=5.0))
    usage = measured(*((at, cpu) for at in times))
    assert averages(usage, times[-1]) == pytest.approx(
        dict.fromkeys(averages(usage, times[-1]), cpu)
    )


@given(AMOUNTS, AMOUNTS, st.integers(1, 20))
def test_more_samples_of_the_same_amount_do_not_change_the_average(
    first: float, second: float, pieces: int
) -> None:
    start = ((0.0, first), (30.0, first))
    once = measured(*start, (60.0, second))
    often = measured(*start, *((30.0 + 30.0 * it / pieces, second) for it in range(1, pieces + 1)))
    assert averages(often, 60) == pytest.approx(averages(once, 60))


@given(st.lists(st.tuples(st.floats(0.5, 300.0), st.none() | AMOUNTS), min_size=1, max_size=40))
def test_an_average_is_between_the_measured_amounts(
    samples: list[tuple[float, float | None]],
) -> None:
    times = list(accumulate(interval for interval, _ in samples))
    usage = measured(*((at, cpu) for at, (_, cpu) in zip(times, samples, strict=True)))
    amounts = [cpu for _, cpu in samples if cpu is not None]
    for average in averages(usage, times[-1]).values():
        assert min(amounts) * (1 - 1e-9) <= average <= max(amounts) * (1 + 1e-9)
    assert all(seconds <= WINDOWS[name] for name, seconds in covered(usage, times[-1]).items())


def test_a_gap_is_not_covered_and_not_zero() -> None:
    usage = measured(*every_ten_seconds(0, 3600, 2.0), (3720, 2.0))
    assert averages(usage, 3720) == pytest.approx({"1m": 2.0, "5m": 2.0, "15m": 2.0})
    assert covered(usage, 3720) == {"1m": 8.725, "5m": 300.0, "15m": 900.0}


def test_an_amount_that_is_not_measured_is_a_gap_of_that_resource_only() -> None:
    usage = measured((0, 1.0), (30, 1.0))
    for at in range(40, 101, 10):
        usage = usage.add(NodeUsageSample(at=at * SECOND, used={MEMORY: 5.0}))
    assert covered(usage, 100)["1m"] == pytest.approx(7.84, abs=0.01)
    assert averages(usage, 100)["1m"] == pytest.approx(1.0)
    assert usage.averages_at(MEMORY, 100 * SECOND)["1m"].amount == pytest.approx(5.0)


def test_a_gap_that_lasts_is_visible_before_it_ends() -> None:
    usage = measured(*every_ten_seconds(0, 3600, 2.0))
    last, late = round((3600 + MAX_GAP_SECONDS) * SECOND), 3600 + MAX_GAP_SECONDS + 1
    assert usage.newest(last) == usage.sample
    assert usage.newest(round(late * SECOND)) is None
    assert covered(usage, 3600 + MAX_GAP_SECONDS)["1m"] == 60.0
    assert covered(usage, late)["1m"] < 30.0
    assert averages(usage, 3600 + 900) == pytest.approx({"5m": 2.0, "15m": 2.0})
    assert averages(usage, 3600 + 86_400) == {}


@pytest.mark.parametrize("at", [0, 10])
def test_a_sample_that_is_not_newer_is_ignored(at: float) -> None:
    usage = measured((0, 1.0), (10, 1.0))
    assert usage.add(sample(at, 9.0)) is usage


RARE = MeasuredUsage(max_gap_seconds=150.0)


@pytest.mark.parametrize(
    ("times", "seconds"),
    [
        ((0,), 60),
        ((0, 15), 60),
        ((0, 33), 82.5),
        ((0, 60), 150),
        ((0, 60, 136), 150),
        ((0, 15, 145), 60),
        ((0, 140, 155), 60),
    ],
)
def test_rare_samples_are_current_until_two_are_late(
    times: tuple[float, ...], seconds: float
) -> None:
    usage = RARE
    for at in times:
        usage = usage.add(sample(at, 1.0))
    end = times[-1] + seconds
    assert usage.newest(round(end * SECOND)) == usage.sample
    assert usage.newest(round((end + 1) * SECOND)) is None


def test_rare_samples_cover_all_time_but_outages() -> None:
    usage = RARE
    for at in (*range(0, 601, 60), 676):
        usage = usage.add(sample(at, 1.0))
    assert covered(usage, 676)["5m"] == 300.0
    often = RARE
    for at in (*range(0, 601, 15), 700):
        often = often.add(sample(at, 1.0))
    assert covered(often, 700)["1m"] < 20.0


def test_an_observer_that_samples_rarely_allows_longer_intervals() -> None:
    usage = MeasuredUsage(max_gap_seconds=200.0).add(sample(0, 1.0)).add(sample(150, 3.0))
    assert averages(usage, 150) == pytest.approx({"1m": 3.0, "5m": 3.0, "15m": 3.0})
