"""How far the clocks of client and server are apart, as far as dates in whole seconds tell."""

from collections.abc import Iterable
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.client.rest.server_health import ClockSkew
from podstatus.testing.clock import FakeClock

SECOND = 1_000_000_000
NOON = "2027-01-15T12:00:00Z"


def asked(skew: float, starts: Iterable[float], took: float = 0.01) -> float | None:
    """Return the skew after responses of a server whose clock is behind by `skew`."""
    known, clock = ClockSkew(), FakeClock(NOON)
    for start in sorted(starts):
        at = clock.now() / SECOND + start
        date = formatdate(at + took / 2 - skew, usegmt=True)
        sent = clock.monotonic() + int(start * SECOND)
        known.record(date, requested_at=sent, now=sent + int(took * SECOND))
    return known.seconds(clock)


@pytest.mark.parametrize("skew", [-600.0, -7.5, 0.0, 7.5, 600.0])
def test_the_skew_is_exact_to_the_second(skew: float) -> None:
    seconds = asked(skew, [number * 1.1 for number in range(16)])
    assert seconds is not None
    assert abs(skew) - 1.1 <= seconds <= abs(skew)


@given(
    starts=st.lists(st.floats(0, 1000), min_size=1, max_size=40),
    took=st.floats(0, 60),
    skew=st.floats(-5, 5),
)
def test_the_skew_is_never_overestimated(starts: list[float], took: float, skew: float) -> None:
    seconds = asked(skew, starts, took)
    assert seconds is None or seconds <= abs(skew) + 0.001


def test_a_slow_answer_does_not_look_like_a_wrong_clock() -> None:
    assert asked(0.0, [1.0], took=45.0) == 0.0


@pytest.mark.parametrize("date", [None, "", "yesterday", "Mon, 99 Foo 2026 00:00:00 GMT"])
def test_nothing_is_known_without_a_date(date: str | None) -> None:
    known = ClockSkew()
    known.record(date, requested_at=0, now=1)
    assert known.seconds(FakeClock()) is None


@pytest.mark.parametrize("step", [-600.0, -60.0, -7.5, 7.5, 60.0, 600.0])
async def test_a_jump_of_the_own_clock_shows_at_once(step: float) -> None:
    known, clock = ClockSkew(), FakeClock(NOON)
    for _ in range(20):
        known.record(
            formatdate(clock.now() / SECOND), requested_at=clock.monotonic(), now=clock.monotonic()
        )
        await clock.advance(10)
    clock.step(step)
    seconds = known.seconds(clock)
    assert seconds is not None
    assert abs(step) - 1.1 <= seconds <= abs(step)


@pytest.mark.parametrize("step", [-600.0, -60.0, -7.5, 7.5, 60.0, 600.0])
async def test_a_jump_of_the_server_clock_shows_within_a_minute(step: float) -> None:
    known, clock = ClockSkew(), FakeClock(NOON)
    for number in range(27):
        server = clock.now() / SECOND + (0 if number < 20 else step)
        known.record(formatdate(server), requested_at=clock.monotonic(), now=clock.monotonic())
        await clock.advance(10)
    seconds = known.seconds(clock)
    assert seconds is not None
    assert abs(step) - 1.1 <= seconds <= abs(step)
