"""Work that may take only so long."""

import asyncio

import pytest

from podstatus.base.aio import run_with_timeout
from podstatus.testing.clock import FakeClock


def test_work_that_is_done_in_time_gives_what_it_came_to() -> None:
    async def main() -> None:
        clock = FakeClock()
        working = asyncio.ensure_future(run_with_timeout(3, clock, _after(clock, 2)))
        await clock.advance(2)
        assert await working == "done"

    asyncio.run(main())


@pytest.mark.parametrize("seconds", [5, None])
def test_what_goes_wrong_in_time_comes_out(seconds: float | None) -> None:
    async def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        asyncio.run(run_with_timeout(seconds, FakeClock(), fail()))


def test_work_without_a_limit_takes_its_time() -> None:
    async def main() -> None:
        clock = FakeClock()
        working = asyncio.ensure_future(run_with_timeout(None, clock, _after(clock, 1e6)))
        await clock.advance(1e6)
        assert await working == "done"

    asyncio.run(main())


def test_who_takes_too_long_is_waited_for_while_it_cleans_up() -> None:
    async def main() -> None:
        clock, told = FakeClock(), []

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await clock.wait(4)
                told.append("clean")

        working = asyncio.ensure_future(run_with_timeout(3, clock, work()))
        await clock.advance(6.9)
        assert not working.done()
        await clock.advance(0.1)
        with pytest.raises(TimeoutError):
            await working
        assert told == ["clean"]

    asyncio.run(main())


def test_who_is_cancelled_cancels_the_work() -> None:
    async def main() -> None:
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

    asyncio.run(main())


def test_trouble_while_it_cleans_up_does_not_hide_that_it_took_too_long() -> None:
    async def main() -> None:
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

    asyncio.run(main())


async def _after(clock: FakeClock, seconds: float) -> str:
    await clock.wait(seconds)
    return "done"
