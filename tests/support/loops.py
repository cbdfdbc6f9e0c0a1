"""Tests that are coroutines."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import ParamSpec

Arguments = ParamSpec("Arguments")


def in_loop(test: Callable[Arguments, Awaitable[None]]) -> Callable[Arguments, None]:
    """The test, run in an event loop of its own; nothing takes longer than a minute and a half."""

    @wraps(test)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        async def limited() -> None:
            async with asyncio.timeout(90):
                await test(*args, **kwargs)

        asyncio.run(limited())

    return run


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what others do: processes, the kernel."""
    while not condition():  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.01)
