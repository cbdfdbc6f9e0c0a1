import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.base.backoff import Backoff


def after(failures: int, backoff: Backoff) -> Backoff:
    for _ in range(failures):
        backoff = backoff.failed()
    return backoff


def test_nothing_is_waited_for_before_the_first_failure() -> None:
    assert Backoff().delay(0.5) == 0.0


def test_delays_double_up_to_the_maximum() -> None:
    backoff = Backoff(initial_seconds=1, max_seconds=10, jitter=0)
    waits = [after(failures, backoff).delay(0) for failures in range(1, 7)]
    assert waits == [1, 2, 4, 8, 10, 10]


def test_success_resets_the_delay() -> None:
    backoff = Backoff(initial_seconds=1, max_seconds=10, jitter=0)
    assert after(5, backoff).reset() == backoff
    assert after(5, backoff).reset().failed().delay(0) == 1


@pytest.mark.parametrize(("chance", "seconds"), [(0.0, 4.0), (0.5, 3.0), (1.0, 2.0)])
def test_jitter_shortens_the_delay(chance: float, seconds: float) -> None:
    assert after(3, Backoff(initial_seconds=1, jitter=0.5)).delay(chance) == seconds


@given(
    failures=st.integers(1, 10**9),
    chance=st.floats(0, 1),
    first=st.floats(0, 10),
    factor=st.floats(1, 1e6),
)
def test_no_delay_exceeds_the_maximum(
    failures: int, chance: float, first: float, factor: float
) -> None:
    backoff = Backoff(initial_seconds=first, max_seconds=20, factor=factor, failures=failures)
    assert first / 2 <= backoff.delay(chance) + 1e-9
    assert backoff.delay(chance) <= 20


@pytest.mark.parametrize(
    "wrong",
    [
        {"initial_seconds": -1},
        {"initial_seconds": 2, "max_seconds": 1},
        {"factor": 0.5},
        {"jitter": 1.5},
    ],
)
def test_invalid_values_are_rejected(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="expected"):
        Backoff(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(("uptime", "failures"), [(0.0, 4), (60.0, 4), (60.1, 1)])
def test_a_long_uptime_counts_as_a_success(uptime: float, failures: int) -> None:
    assert after(3, Backoff()).failed_after(uptime, reset_after=60.0).failures == failures
