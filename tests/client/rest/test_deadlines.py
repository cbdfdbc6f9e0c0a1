"""One timer for all requests: only requests that exceed the timeout are cancelled."""

import asyncio

from podstatus.client.rest.deadlines import RequestDeadlines

SOON, NEVER = 0.01, 3600.0


async def wait(deadlines: RequestDeadlines, until: asyncio.Event) -> str:
    """Return how a wait ends."""
    task = deadlines.begin()
    try:
        await until.wait()
    except asyncio.CancelledError:
        return "too late" if deadlines.is_missed(task) else "cancelled"
    finally:
        deadlines.end(task)
    return "in time"


def test_what_takes_too_long_is_ended_and_the_task_goes_on() -> None:
    async def scene() -> tuple[str, int, str]:
        deadlines, never = RequestDeadlines(SOON), asyncio.Event()
        first = await wait(deadlines, never)
        task = asyncio.current_task()
        return first, 0 if task is None else task.cancelling(), await wait(deadlines, never)

    assert asyncio.run(scene()) == ("too late", 0, "too late")


def test_each_is_ended_at_its_own_time() -> None:
    async def scene() -> list[str]:
        deadlines, never, done = RequestDeadlines(SOON), asyncio.Event(), asyncio.Event()
        ended: list[str] = []

        async def note(name: str, until: asyncio.Event) -> None:
            ended.append(f"{name} {await wait(deadlines, until)}")

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(note("first", never))
            tasks.create_task(note("second", done))
            await asyncio.sleep(0)
            done.set()
            await asyncio.sleep(SOON / 2)
            tasks.create_task(note("third", never))
        return ended

    assert asyncio.run(scene()) == ["second in time", "first too late", "third too late"]


def test_a_task_cancelled_by_other_code_is_not_late() -> None:
    async def scene() -> str:
        deadlines = RequestDeadlines(NEVER)
        waiting = asyncio.create_task(wait(deadlines, asyncio.Event()))
        await asyncio.sleep(0)
        waiting.cancel()
        return await waiting

    assert asyncio.run(scene()) == "cancelled"


def test_who_is_late_and_cancelled_by_others_at_once_is_cancelled() -> None:
    async def scene() -> tuple[str, int]:
        waiting = asyncio.create_task(wait(RequestDeadlines(0), asyncio.Event()))
        await asyncio.sleep(0)
        # So that both have cancelled the task before it can run.
        asyncio.get_running_loop().call_soon(waiting.cancel)
        return await waiting, waiting.cancelling()

    assert asyncio.run(scene()) == ("cancelled", 1)
