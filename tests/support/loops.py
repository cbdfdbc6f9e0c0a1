"""Waiting and services in an event loop."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a change by another process or the kernel."""
    while not condition():  # noqa: ASYNC110 - nothing signals it
        await asyncio.sleep(0.01)


@asynccontextmanager
async def in_background(service: Coroutine[Any, Any, object]) -> AsyncIterator[None]:
    """Run a service until the block ends. Fails if it ended before; raises what it raised."""
    task = asyncio.create_task(service)
    has_ended = False
    try:
        yield
        has_ended = task.done()
    finally:
        task.cancel()
        await asyncio.wait({task})
    if not task.cancelled():
        task.result()
    assert not has_ended, "the service ended by itself"
