from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.base.metric_values import Histogram

BOUNDS = (0.5, 1, 5)


def of(*values: float) -> Histogram:
    histogram = Histogram.empty(*BOUNDS)
    for value in values:
        histogram = histogram.observe(value)
    return histogram


@pytest.mark.parametrize(
    ("value", "counts"),
    [
        (0, (1, 0, 0, 0)),
        (0.5, (1, 0, 0, 0)),
        (0.500001, (0, 1, 0, 0)),
        (1, (0, 1, 0, 0)),
        (5, (0, 0, 1, 0)),
        (6, (0, 0, 0, 1)),
    ],
)
def test_a_value_belongs_to_the_first_bound_it_does_not_exceed(
    value: float, counts: tuple[int, ...]
) -> None:
    assert of(value).counts == counts


def test_an_empty_one_has_a_bucket_more_than_bounds_and_no_sum() -> None:
    empty = Histogram.empty(*BOUNDS)
    assert (empty.counts, empty.count, empty.sum) == ((0, 0, 0, 0), 0, 0.0)


def test_buckets_add_up_as_prometheus_expects() -> None:
    assert of(0.1, 0.2, 3, 100).cumulative() == ((0.5, 2), (1, 2), (5, 3), (float("inf"), 4))


def test_observing_leaves_the_earlier_value_as_it_was() -> None:
    before = of(1)
    before.observe(2)
    assert before == of(1)


@given(st.lists(st.floats(min_value=0, max_value=10)))
def test_each_bound_has_as_many_as_do_not_exceed_it(values: list[float]) -> None:
    histogram = of(*values)
    for bound, count in histogram.cumulative():
        assert count == len([value for value in values if value <= bound])
    assert all(low <= high for (_, low), (_, high) in pairwise(histogram.cumulative()))
    assert histogram.count == len(values)
    assert histogram.sum == pytest.approx(sum(values))
