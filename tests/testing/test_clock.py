import asyncio
import itertools

from podstatus.kube.scalars.time import Time
from podstatus.testing.clock import FakeClock, run_ready_tasks

SECOND = 1_000_000_000


async def test_time_starts_at_the_given_moment_and_moves_only_by_advance() -> None:
    clock = FakeClock("2024-05-06T07:08:09Z")
    assert Time.from_unix_nanos(clock.now()).wire == "2024-05-06T07:08:09Z"
    await clock.advance(61.5)
    assert str(Time.from_unix_nanos(clock.now())) == "2024-05-06T07:09:10.5Z"


async def test_a_waiter_comes_back_when_its_time_has_come_and_not_before() -> None:
    clock = FakeClock()
    waiter = asyncio.create_task(clock.wait(10))
    await run_ready_tasks()
    await clock.advance(9.999)
    assert not waiter.done()
    await clock.advance(0.001)
    assert waiter.done()


async def test_every_moment_on_the_way_is_seen_at_its_own_time() -> None:
    clock = FakeClock()
    start = clock.now()
    seen: list[int] = []

    async def tick() -> None:
        while True:
            await clock.wait(10)
            seen.append((clock.now() - start) // SECOND)

    ticker = asyncio.create_task(tick())
    await run_ready_tasks()
    await clock.advance(35)
    ticker.cancel()
    assert seen == [10, 20, 30]
    assert clock.now() - start == 35 * SECOND


async def test_waiters_come_back_in_the_order_of_their_times_then_of_asking() -> None:
    clock = FakeClock()
    order: list[str] = []

    async def wait(name: str, seconds: float) -> None:
        await clock.wait(seconds)
        order.append(name)

    async def main() -> None:
        async with asyncio.TaskGroup() as tasks:
            for name, seconds in (("late", 3), ("first", 1), ("second", 1), ("soon", 0.5)):
                tasks.create_task(wait(name, seconds))
            await run_ready_tasks()
            await clock.advance(3)

    await main()
    assert order == ["soon", "first", "second", "late"]


async def test_a_waiter_that_gave_up_is_passed_over() -> None:
    clock = FakeClock()
    given_up = asyncio.create_task(clock.wait(1))
    patient = asyncio.create_task(clock.wait(2))
    await run_ready_tasks()
    given_up.cancel()
    await clock.advance(2)
    assert given_up.cancelled()
    assert patient.done()


async def test_advance_runs_tasks_that_do_not_wait_for_the_clock() -> None:
    other = asyncio.create_task(asyncio.sleep(0))
    await FakeClock().advance(1)
    assert other.done()


async def test_the_clock_runs_tasks_for_the_given_rounds() -> None:
    async def slow(clock: FakeClock) -> None:
        await clock.wait(1)
        for _ in range(100):
            await asyncio.sleep(0)

    async def main(rounds: int) -> bool:
        clock = FakeClock(rounds=rounds)
        task = asyncio.create_task(slow(clock))
        await run_ready_tasks()
        await clock.advance(1)
        return task.done()

    assert not await main(10)
    assert await main(110)


async def test_settle_lets_a_chain_of_tasks_run_to_its_end() -> None:
    async def hand_on(before: asyncio.Event, after: asyncio.Event) -> None:
        await before.wait()
        after.set()

    async def main() -> None:
        links = [asyncio.Event() for _ in range(10)]
        async with asyncio.TaskGroup() as tasks:
            for before, after in itertools.pairwise(links):
                tasks.create_task(hand_on(before, after))
            await run_ready_tasks()
            assert not links[-1].is_set()
            links[0].set()
            await run_ready_tasks()
            assert links[-1].is_set()

    await main()
