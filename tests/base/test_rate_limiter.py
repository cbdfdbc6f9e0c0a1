"""Waiting for tokens, in virtual time."""

import asyncio

import pytest

from podstatus.base.rate_limiter import RateLimiter
from podstatus.testing.clock import FakeClock


async def test_a_burst_goes_at_once_and_the_rest_at_the_rate() -> None:
    clock = FakeClock()
    start = clock.now()
    bucket = RateLimiter(10, 3, clock)
    went: list[float] = []

    async def one() -> None:
        await bucket.wait()
        went.append((clock.now() - start) / 1e9)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(6):
            tasks.create_task(one())
        await clock.advance(1)
    assert went == pytest.approx([0, 0, 0, 0.1, 0.2, 0.3])


async def test_what_was_not_used_is_saved_up_to_a_burst() -> None:
    clock = FakeClock()
    bucket = RateLimiter(10, 3, clock)
    for _ in range(3):
        await bucket.wait()
    await clock.advance(100)
    tasks = [asyncio.create_task(bucket.wait()) for _ in range(5)]
    await asyncio.sleep(0)
    went = sum(task.done() for task in tasks)
    await clock.advance(1)
    assert went == 3


async def test_who_gives_up_gives_the_token_back() -> None:
    clock = FakeClock()
    bucket = RateLimiter(1, 1, clock)
    await bucket.wait()
    waiting = asyncio.create_task(bucket.wait())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    later = asyncio.create_task(bucket.wait())
    await clock.advance(1.01)
    assert later.done()


async def test_a_clock_that_was_set_back_does_not_block_requests() -> None:
    clock = FakeClock()
    bucket = RateLimiter(1, 1, clock)
    await bucket.wait()
    clock.step(-3600)
    waiting = asyncio.create_task(bucket.wait())
    await clock.advance(1.01)
    assert waiting.done()


@pytest.mark.parametrize(("qps", "burst"), [(0, 1), (-1, 1), (5, 0)])
def test_a_bucket_that_lets_nothing_through_is_refused(qps: float, burst: int) -> None:
    with pytest.raises(ValueError, match="allows nothing"):
        RateLimiter(qps, burst)
