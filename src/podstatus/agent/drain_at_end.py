"""Have the pods of a node end before its agent does, if that is wanted."""

import asyncio
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from podstatus.agent.machine import machine_stops
from podstatus.agent.settings import AUTO, DRAIN, AgentSettings
from podstatus.agent.show_drain import describe_left
from podstatus.workers.shutdown_plan import longest

Say = Callable[[str], None]


@runtime_checkable
class Draining(Protocol):
    """A node that can end its pods before it ends itself."""

    async def drain(self, say: Say) -> tuple[str, ...]:
        """End all pods, and say what is waited for; those that have not ended in their time."""


async def wants_drain(settings: AgentSettings) -> bool:
    """Whether pods are to end before the agent does."""
    if settings.on_stop != AUTO:
        return settings.on_stop == DRAIN
    return longest(settings.shutdown_periods) > 0 and await machine_stops()


async def drain_at_end(node: Draining, whole: "asyncio.Task[None]", say: Say) -> bool:
    """End all pods, unless the whole agent ends before; whether they have ended."""
    draining = asyncio.ensure_future(node.drain(say))
    try:
        await asyncio.wait({whole, draining}, return_when=asyncio.FIRST_COMPLETED)
        if not draining.done():
            return False
        if left := draining.result():
            say(f"time is over, {describe_left(left)}")
        return not left
    finally:
        draining.cancel()
