import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.base.token_bucket import TokenBucket

SECOND = 1_000_000_000


def spent(allowance: TokenBucket, *moments: float) -> list[bool]:
    """Whether it was allowed at each of these seconds."""
    found = []
    for seconds in moments:
        allowance, allowed = allowance.try_acquire(round(seconds * SECOND))
        found.append(allowed)
    return found


@pytest.mark.parametrize(
    ("moments", "allowed"),
    {
        (0, 0, 0): [True, True, False],
        (0, 0, 9.999, 10, 10): [True, True, False, True, False],
        (0, 0, 20, 20, 20): [True, True, True, True, False],
        (0, 0, 1000, 1000, 1000): [True, True, True, True, False],
        # In small steps as in a large one.
        (0, 0, *range(1, 11)): [True, True, *[False] * 9, True],
        # A clock that is set back gives nothing, and counts from there.
        (100, 100, 50, 59, 60): [True, True, False, False, True],
    }.items(),
    ids=str,
)
def test_so_many_at_once_then_one_in_a_while(moments: tuple[float, ...], allowed: object) -> None:
    assert spent(TokenBucket(burst=2, interval_ns=10 * SECOND), *moments) == allowed


def test_the_wait_is_until_the_next_is_allowed() -> None:
    allowance = TokenBucket(burst=1, interval_ns=10 * SECOND)
    assert allowance.wait_seconds(0) == 0
    allowance, _ = allowance.try_acquire(0)
    assert allowance.wait_seconds(3 * SECOND) == 7
    assert allowance.wait_seconds(10 * SECOND) == 0


@given(st.integers(1, 5), st.integers(1, 10**9), st.lists(st.integers(0, 10**10), max_size=40))
def test_no_more_is_allowed_than_the_burst_and_what_time_gives(
    burst: int, every: int, steps: list[int]
) -> None:
    allowance, now, allowed = TokenBucket(burst=burst, interval_ns=every), 0, 0
    for step in steps:
        now += step
        waits = allowance.wait_seconds(now)
        allowance, may = allowance.try_acquire(now)
        assert may == (waits == 0)
        allowed += may
    assert allowed <= burst + now // every


def test_a_rate_is_turned_into_a_distance() -> None:
    assert TokenBucket.per_second(50, 100) == TokenBucket(burst=100, interval_ns=20_000_000)


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_an_allowance_that_allows_nothing_is_refused(rate: float, burst: int) -> None:
    with pytest.raises(ValueError, match="allows nothing"):
        TokenBucket.per_second(rate, burst)
