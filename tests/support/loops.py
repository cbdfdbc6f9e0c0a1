"""Waiting in an event loop."""

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a change by another process or the kernel."""
    while not condition():  # noqa: ASYNC110 - nothing signals it
        await asyncio.sleep(0.01)
