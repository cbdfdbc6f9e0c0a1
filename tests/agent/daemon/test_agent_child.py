"""One process of a supervised agent."""

import asyncio
import os
import signal

from podstatus.agent.daemon.agent_child import AgentChild


async def killed_many_times() -> int:
    """Return the exit code of a process that gets signals while it exits."""
    child = AgentChild(lambda _: None, lambda _: None)
    running = asyncio.create_task(child.run(("sleep", "600"), os.environ))
    while not child.is_running:
        await asyncio.wait({running}, timeout=0.01)
    for _ in range(200):
        child.send_signal(signal.SIGTERM)
    return await running


async def test_signals_to_a_process_that_exits_do_not_lose_its_exit_code() -> None:
    assert [await killed_many_times() for _ in range(20)] == [-signal.SIGTERM] * 20
