import asyncio
import threading
import time

from podstatus.base.system_clock import SystemClock
from podstatus.base.wake_up import WakeUp


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_the_system_clock_returns_the_time_and_waits() -> None:
    async def main() -> float:
        begin = time.monotonic()
        await SystemClock().wait(0.01)
        return time.monotonic() - begin

    assert time.time_ns() <= SystemClock().now() <= time.time_ns()
    assert await main() >= 0.009  # timers of the loop are as precise as its clock


async def test_a_call_before_the_wait_is_not_lost() -> None:
    wake_up = WakeUp[str]()
    wake_up.set("early")
    assert await wake_up.wait() == {"early"}


async def test_the_waiter_sleeps_until_it_is_called() -> None:
    wake_up = WakeUp[str]()
    waiter = asyncio.create_task(wake_up.wait())
    await settle()
    assert not waiter.done()
    wake_up.set("now")
    assert await waiter == {"now"}


async def test_many_calls_before_it_looks_count_as_one() -> None:
    wake_up = WakeUp[str]()
    waiter = asyncio.create_task(wake_up.wait())
    await settle()
    for _ in range(3):
        wake_up.set("again")
    assert await waiter == {"again"}
    waiter = asyncio.create_task(wake_up.wait())
    await settle()
    assert not waiter.done()
    waiter.cancel()


async def test_different_reasons_come_together() -> None:
    wake_up = WakeUp[str]()
    wake_up.set("one")
    wake_up.set("two")
    assert await wake_up.wait() == {"one", "two"}


async def test_a_call_while_the_waiter_is_busy_is_kept_for_its_next_wait() -> None:
    wake_up = WakeUp[str]()
    wake_up.set("first")
    await wake_up.wait()
    wake_up.set("meanwhile")
    assert await wake_up.wait() == {"meanwhile"}


def test_take_empties_without_waiting() -> None:
    wake_up = WakeUp[str]()
    assert wake_up.drain() == frozenset()
    wake_up.set("reason")
    assert wake_up.drain() == {"reason"}
    assert wake_up.drain() == frozenset()


def test_one_reason_can_be_taken_and_the_others_stay() -> None:
    wake_up = WakeUp[str]()
    wake_up.set("one")
    wake_up.set("two")
    assert wake_up.discard("one")
    assert not wake_up.discard("one")
    assert wake_up.drain() == {"two"}


async def test_a_cancelled_wait_leaves_later_reasons_to_the_next() -> None:
    wake_up = WakeUp[str]()
    waiter = asyncio.create_task(wake_up.wait())
    await settle()
    waiter.cancel()
    await asyncio.gather(waiter, return_exceptions=True)
    wake_up.set("later")
    assert await wake_up.wait() == {"later"}


async def test_a_reason_that_comes_with_the_cancellation_is_kept() -> None:
    wake_up = WakeUp[str]()
    waiter = asyncio.create_task(wake_up.wait())
    await settle()
    wake_up.set("just then")
    waiter.cancel()
    await asyncio.gather(waiter, return_exceptions=True)
    assert wake_up.drain() == {"just then"}


def test_a_reason_for_a_loop_that_has_ended_is_kept_for_the_next_loop() -> None:
    wake_up = WakeUp[str]()
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)  # it would report the task left behind
    task = loop.create_task(wake_up.wait())
    loop.run_until_complete(settle())
    loop.close()
    wake_up.set("late")
    assert not task.done()
    assert asyncio.run(wake_up.wait()) == {"late"}


async def test_a_call_from_another_thread_wakes_a_sleeping_loop() -> None:
    wake_up = WakeUp[str]()
    waiter = asyncio.create_task(wake_up.wait())
    await settle()
    thread = threading.Thread(target=wake_up.set, args=("from afar",))
    thread.start()
    assert await waiter == {"from afar"}
    thread.join()


async def test_no_call_is_lost_between_threads() -> None:
    wake_up = WakeUp[str]()
    threads, calls = 4, 500
    done: list[int] = []

    def produce() -> None:
        for number in range(calls):
            done.append(number)
            wake_up.set("more")

    producers = [threading.Thread(target=produce) for _ in range(threads)]
    for producer in producers:
        producer.start()
    seen = 0
    while seen < threads * calls:
        await wake_up.wait()
        seen = len(done)
    for producer in producers:
        producer.join()
    assert seen == threads * calls
