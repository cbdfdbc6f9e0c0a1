"""API calls with a timeout, so that a dead connection cannot block a heartbeat."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from podstatus.base.clock import Clock
from podstatus.kube.api_errors import UnavailableError

T = TypeVar("T")


async def call_with_timeout(clock: Clock, seconds: float, call: Coroutine[Any, Any, T]) -> T:
    """The result of the call. Raises UnavailableError if it takes longer than `seconds`."""
    limit = asyncio.timeout(None)
    timer = asyncio.create_task(_expire(clock, seconds, limit))
    try:
        async with limit:
            return await call
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise UnavailableError(
            f"no response from the API server within {seconds:g} s; will retry"
        ) from error
    finally:
        timer.cancel()


async def _expire(clock: Clock, seconds: float, limit: asyncio.Timeout) -> None:
    await clock.wait(seconds)
    limit.reschedule(asyncio.get_running_loop().time())
