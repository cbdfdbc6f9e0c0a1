"""Functions in daemon threads, which do not delay the exit of the process."""

import asyncio
import subprocess
import sys
import threading

import pytest

from podstatus.base.daemon_thread import SharedCalls, run_in_daemon_thread

_ENDS_WHILE_A_THREAD_WORKS = """
import asyncio, time
from podstatus.base.daemon_thread import run_in_daemon_thread

async def main():
    working = asyncio.create_task(run_in_daemon_thread(time.sleep, 1000))
    await asyncio.sleep(0.05)
    working.cancel()

asyncio.run(main())
"""


def test_the_result_of_the_work_is_returned() -> None:
    assert asyncio.run(run_in_daemon_thread(int, "11", base=2)) == 3


def test_what_the_work_raises_is_raised() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        asyncio.run(run_in_daemon_thread(int, "x"))


async def test_work_of_a_cancelled_caller_ends_without_an_error() -> None:
    await _give_up()


async def _give_up() -> None:
    go_on, over = threading.Event(), threading.Event()

    def work() -> None:
        go_on.wait()
        over.set()

    working = asyncio.create_task(run_in_daemon_thread(work))
    await asyncio.sleep(0)
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    go_on.set()
    assert over.wait(10)
    await asyncio.sleep(0.01)  # its result arrives at a cancelled future


def test_a_process_ends_while_a_thread_works() -> None:
    subprocess.run([sys.executable, "-c", _ENDS_WHILE_A_THREAD_WORKS], check=True, timeout=60)


async def test_concurrent_callers_share_a_call_that_hangs() -> None:
    go_on, calls = threading.Event(), list[str]()

    def work(argument: str) -> str:
        calls.append(argument)
        go_on.wait()
        return argument * 2

    shared = SharedCalls()
    callers = [asyncio.create_task(shared.run(work, argument)) for argument in ("a", "a", "b")]
    await asyncio.sleep(0)
    callers[0].cancel()
    go_on.set()
    assert await asyncio.gather(*callers[1:]) == ["aa", "bb"]
    assert sorted(calls) == ["a", "b"]
    assert await shared.run(work, "a") == "aa"
    assert sorted(calls) == ["a", "a", "b"]
