"""API calls with a timeout."""

import asyncio

import pytest

from podstatus.kube.api_errors import UnavailableError
from podstatus.node.deadline import call_with_timeout
from podstatus.testing.clock import FakeClock, run_ready_tasks


async def answer() -> str:
    return "yes"


async def hang() -> str:
    await asyncio.get_running_loop().create_future()
    return "never"


async def test_a_call_that_comes_back_leaves_nothing_behind() -> None:
    clock = FakeClock()
    assert await call_with_timeout(clock, 5, answer()) == "yes"
    await run_ready_tasks()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_call_that_takes_too_long_is_given_up() -> None:
    clock = FakeClock()
    calling = asyncio.create_task(call_with_timeout(clock, 5, hang()))
    await clock.advance(4.9)
    assert not calling.done()
    await clock.advance(0.1)
    with pytest.raises(UnavailableError, match="no response from the API server within 5 s"):
        await calling
