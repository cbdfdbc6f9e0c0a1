"""The stopwatch does not depend on the wall clock."""

import asyncio

import pytest

from podstatus.base.clock import Elapsed
from podstatus.testing.clock import FakeClock

DAY = 86_400


@pytest.mark.parametrize("days", [-40_000, -1, 0, 10, 2_900_000])
def test_a_clock_that_is_set_makes_no_time_pass(days: int) -> None:
    async def scene() -> None:
        clock = FakeClock()
        elapsed = Elapsed(clock)
        assert elapsed.seconds() == 0
        await clock.advance(5)
        clock.step(days * DAY)
        assert elapsed.seconds() == 5
        await clock.advance(2.5)
        assert elapsed.seconds() == 7.5

    asyncio.run(scene())
