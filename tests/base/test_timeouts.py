import asyncio

from podstatus.base.timeouts import wait_event_or_timeout
from podstatus.testing.clock import FakeClock, run_ready_tasks


async def _waiting(
    clock: FakeClock, event: asyncio.Event, seconds: float | None
) -> asyncio.Task[None]:
    task = asyncio.ensure_future(wait_event_or_timeout(event, clock, seconds))
    await run_ready_tasks()
    return task


async def test_it_comes_back_when_the_time_is_over() -> None:
    clock = FakeClock()
    task = await _waiting(clock, asyncio.Event(), 3)
    await clock.advance(2.9)
    assert not task.done()
    await clock.advance(0.1)
    assert task.done()


async def test_it_comes_back_when_the_event_is_set_and_leaves_nothing_behind() -> None:
    event = asyncio.Event()
    task = await _waiting(FakeClock(), event, 3)
    event.set()
    await task
    await run_ready_tasks()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_without_a_time_it_waits_for_the_event_alone() -> None:
    clock, event = FakeClock(), asyncio.Event()
    task = await _waiting(clock, event, None)
    await clock.advance(1_000_000)
    assert not task.done()
    event.set()
    await task


async def test_no_time_is_over_at_once() -> None:
    await wait_event_or_timeout(asyncio.Event(), FakeClock(), 0)
