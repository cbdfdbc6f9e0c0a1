"""Counters and histograms by label values: bounded; a snapshot does not change."""

import pytest

from podstatus.base.metric_values import CounterVec, Histogram, HistogramVec


def test_each_kind_is_counted() -> None:
    tally = CounterVec()
    for kind in ("a", "b", "a"):
        tally.inc(kind, "x")
    assert tally.snapshot() == {("a", "x"): 2, ("b", "x"): 1}


def test_what_has_no_kinds_is_counted_too() -> None:
    tally = CounterVec()
    tally.inc()
    assert tally.snapshot() == {(): 1}


def test_more_kinds_than_there_may_be_are_counted_together() -> None:
    tally = CounterVec(max_series=2)
    for number in range(5):
        tally.inc(str(number), "x")
    tally.inc("0", "x")
    assert tally.snapshot() == {("0", "x"): 2, ("1", "x"): 1, ("other", "other"): 3}


def test_values_are_spread_by_kind() -> None:
    spread = HistogramVec(1, 2, max_series=1)
    for kind, value in (("a", 0.5), ("a", 3.0), ("b", 1.5)):
        spread.observe(value, kind)
    assert spread.snapshot() == {
        ("a",): Histogram((1, 2), (1, 0, 1), 3.5),
        ("other",): Histogram((1, 2), (0, 1, 0), 1.5),
    }


def test_a_snapshot_does_not_change() -> None:
    tally, spread = CounterVec(), HistogramVec(1)
    before = tally.snapshot(), spread.snapshot()
    tally.inc("a")
    spread.observe(1, "a")
    assert before == ({}, {})


def test_two_histograms_add_up() -> None:
    one, other = Histogram.empty(1, 2).observe(1.5), Histogram.empty(1, 2).observe(9)
    assert one.merge(other) == Histogram.empty(1, 2).observe(1.5).observe(9)


def test_histograms_of_other_bounds_do_not() -> None:
    with pytest.raises(ValueError, match="zip"):
        Histogram.empty(1).merge(Histogram.empty(1, 2))
