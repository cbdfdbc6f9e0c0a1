import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.base.token_bucket import TokenBucket

SECOND = 1_000_000_000


def spent(bucket: TokenBucket, *moments: float) -> list[bool]:
    """Return whether a token was available at each of these times, in seconds."""
    results = []
    for seconds in moments:
        bucket, allowed = bucket.try_acquire(round(seconds * SECOND))
        results.append(allowed)
    return results


@pytest.mark.parametrize(
    ("moments", "allowed"),
    {
        (0, 0, 0): [True, True, False],
        (0, 0, 9.999, 10, 10): [True, True, False, True, False],
        (0, 0, 20, 20, 20): [True, True, True, True, False],
        (0, 0, 1000, 1000, 1000): [True, True, True, True, False],
        # Small steps refill as much as a large one.
        (0, 0, *range(1, 11)): [True, True, *[False] * 9, True],
        # A clock that is set back refills nothing, and time counts from there.
        (100, 100, 50, 59, 60): [True, True, False, False, True],
    }.items(),
    ids=str,
)
def test_a_burst_at_once_then_one_per_interval(moments: tuple[float, ...], allowed: object) -> None:
    assert spent(TokenBucket(burst=2, interval_ns=10 * SECOND), *moments) == allowed


def test_future_tokens_are_reserved_in_order_and_given_back() -> None:
    bucket = TokenBucket(burst=1, interval_ns=10 * SECOND)
    waits = []
    for seconds in (0, 3, 4):
        bucket, wait = bucket.reserve(seconds * SECOND)
        waits.append(wait)
    assert waits == [0, 7, 16]
    _, wait = bucket.release().reserve(10 * SECOND)
    assert wait == 10


@given(st.integers(1, 5), st.integers(1, 10**9), st.lists(st.integers(0, 10**10), max_size=40))
def test_no_more_is_allowed_than_the_burst_and_what_time_gives(
    burst: int, every: int, steps: list[int]
) -> None:
    bucket, now, allowed = TokenBucket(burst=burst, interval_ns=every), 0, 0
    for step in steps:
        now += step
        _, waits = bucket.reserve(now)
        bucket, may = bucket.try_acquire(now)
        assert may == (waits == 0)
        allowed += may
    assert allowed <= burst + now // every


def test_a_rate_is_turned_into_a_distance() -> None:
    assert TokenBucket.per_second(50, 100) == TokenBucket(burst=100, interval_ns=20_000_000)


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_a_bucket_that_allows_nothing_is_rejected(rate: float, burst: int) -> None:
    with pytest.raises(ValueError, match="allows nothing"):
        TokenBucket.per_second(rate, burst)
