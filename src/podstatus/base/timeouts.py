"""Timeouts that are measured on a `Clock`."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from podstatus.base.clock import Clock

Result = TypeVar("Result")


async def wait_event_or_timeout(event: asyncio.Event, clock: Clock, seconds: float | None) -> None:
    """Return when the event is set, or after `seconds` on this clock; None means no timeout."""
    if seconds is None or event.is_set():
        await event.wait()
        return
    if seconds <= 0:
        return
    event_task = asyncio.ensure_future(event.wait())
    timeout_task = asyncio.ensure_future(clock.wait(seconds))
    try:
        await asyncio.wait((event_task, timeout_task), return_when=asyncio.FIRST_COMPLETED)
    finally:
        event_task.cancel()
        timeout_task.cancel()


async def run_with_timeout(
    seconds: float | None, clock: Clock, work: Coroutine[Any, Any, Result]
) -> Result:
    """Return the result of `work`; None means no timeout.

    Raises TimeoutError after `seconds` on this clock, once the work was cancelled and has ended.
    """
    if seconds is None:
        return await work
    work_task = asyncio.ensure_future(work)
    timeout_task = asyncio.ensure_future(clock.wait(seconds))
    try:
        await asyncio.wait((work_task, timeout_task), return_when=asyncio.FIRST_COMPLETED)
        if not work_task.done():
            raise TimeoutError
        return work_task.result()
    finally:
        timeout_task.cancel()
        work_task.cancel()
        await asyncio.wait((work_task, timeout_task))
        if not work_task.cancelled():
            work_task.exception()  # mark an exception raised during cancellation as retrieved
