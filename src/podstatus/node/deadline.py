"""Calls that come back in time: a heartbeat must not wait for a connection that is dead."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from podstatus.base.clock import Clock
from podstatus.kube.errors import UnavailableError

T = TypeVar("T")


async def call_with_timeout(clock: Clock, seconds: float, call: Coroutine[Any, Any, T]) -> T:
    """What the call comes to; UnavailableError if it takes longer than that."""
    limit = asyncio.timeout(None)
    alarm = asyncio.create_task(_expire(clock, seconds, limit))
    try:
        async with limit:
            return await call
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise UnavailableError(
            f"the API server has not answered for {seconds:g} s; will try again"
        ) from error
    finally:
        alarm.cancel()


async def _expire(clock: Clock, seconds: float, limit: asyncio.Timeout) -> None:
    await clock.wait(seconds)
    limit.reschedule(asyncio.get_running_loop().time())
