"""`run_with_timeout`: results, timeouts and cancellation."""

import asyncio

import pytest

from podstatus.base.timeouts import run_with_timeout
from podstatus.testing.clock import FakeClock


async def test_work_that_ends_in_time_returns_its_result() -> None:
    clock = FakeClock()
    working = asyncio.ensure_future(run_with_timeout(3, clock, _after(clock, 2)))
    await clock.advance(2)
    assert await working == "done"


@pytest.mark.parametrize("seconds", [5, None])
async def test_an_error_of_the_work_is_raised(seconds: float | None) -> None:
    async def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await run_with_timeout(seconds, FakeClock(), fail())


async def test_work_without_a_limit_takes_its_time() -> None:
    clock = FakeClock()
    working = asyncio.ensure_future(run_with_timeout(None, clock, _after(clock, 1e6)))
    await clock.advance(1e6)
    assert await working == "done"


async def test_work_that_times_out_is_awaited_while_it_cleans_up() -> None:
    clock, steps = FakeClock(), []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await clock.wait(4)
            steps.append("clean")

    working = asyncio.ensure_future(run_with_timeout(3, clock, work()))
    await clock.advance(6.9)
    assert not working.done()
    await clock.advance(0.1)
    with pytest.raises(TimeoutError):
        await working
    assert steps == ["clean"]


async def test_cancelling_the_caller_cancels_the_work() -> None:
    clock = FakeClock()
    work = asyncio.ensure_future(asyncio.Event().wait())

    async def waiting() -> None:
        await work

    working = asyncio.ensure_future(run_with_timeout(3, clock, waiting()))
    await clock.advance(1)
    working.cancel()
    await clock.advance(0)
    assert working.cancelled()
    assert work.cancelled()


async def test_an_error_during_the_cleanup_does_not_hide_the_timeout() -> None:
    clock = FakeClock()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("no")

    working = asyncio.ensure_future(run_with_timeout(3, clock, work()))
    await clock.advance(3)
    with pytest.raises(TimeoutError):
        await working


async def _after(clock: FakeClock, seconds: float) -> str:
    await clock.wait(seconds)
    return "done"
