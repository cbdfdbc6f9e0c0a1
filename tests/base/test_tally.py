"""Counts by kind: bounded, and a look does not change."""

import pytest

from podstatus.base.metrics import Histogram, Spread, Tally


def test_each_kind_is_counted() -> None:
    tally = Tally()
    for kind in ("a", "b", "a"):
        tally.add(kind, "x")
    assert tally.look() == {("a", "x"): 2, ("b", "x"): 1}


def test_what_has_no_kinds_is_counted_too() -> None:
    tally = Tally()
    tally.add()
    assert tally.look() == {(): 1}


def test_more_kinds_than_there_may_be_are_counted_together() -> None:
    tally = Tally(most=2)
    for number in range(5):
        tally.add(str(number), "x")
    tally.add("0", "x")
    assert tally.look() == {("0", "x"): 2, ("1", "x"): 1, ("other", "other"): 3}


def test_values_are_spread_by_kind() -> None:
    spread = Spread(1, 2, most=1)
    for kind, value in (("a", 0.5), ("a", 3.0), ("b", 1.5)):
        spread.add(value, kind)
    assert spread.look() == {
        ("a",): Histogram((1, 2), (1, 0, 1), 3.5),
        ("other",): Histogram((1, 2), (0, 1, 0), 1.5),
    }


def test_a_look_stays_as_it_was() -> None:
    tally, spread = Tally(), Spread(1)
    before = tally.look(), spread.look()
    tally.add("a")
    spread.add(1, "a")
    assert before == ({}, {})


def test_two_histograms_add_up() -> None:
    one, other = Histogram.empty(1, 2).observed(1.5), Histogram.empty(1, 2).observed(9)
    assert one.added(other) == Histogram.empty(1, 2).observed(1.5).observed(9)


def test_histograms_of_other_bounds_do_not() -> None:
    with pytest.raises(ValueError, match="zip"):
        Histogram.empty(1).added(Histogram.empty(1, 2))
