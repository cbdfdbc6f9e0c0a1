"""Drain the node: for `podstatus drain`, and before the agent stops if the settings ask for it."""

import asyncio
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, runtime_checkable

from podstatus.agent.compose.drain_progress import describe_progress, describe_remaining
from podstatus.agent.settings.model import AUTO, DRAIN, AgentSettings
from podstatus.base.programs import find_program
from podstatus.workers.shutdown.manager import ShutdownManager
from podstatus.workers.shutdown.plan import total_seconds

_POLL_SECONDS = 0.1
_REPORT_SECONDS = 1.0
"""Maximum wait for the API server to have the Node as not Ready."""
_SYSTEMCTL_SECONDS = 1.0
"""Timeout of systemctl; the agent itself must stop within 5 s."""
SYSTEMCTL_COMMAND = ("systemctl", "is-system-running")


async def drain_node(
    shutdown: ShutdownManager, report: Callable[[str], None], is_reported: Callable[[], bool]
) -> tuple[str, ...]:
    """Terminate all pods and report the progress; return those that exceeded their time.

    `is_reported`: True once the API server has the Node as not Ready; awaited for at most 1 s.
    """
    shutdown.begin()
    last_line = ""
    async with asyncio.TaskGroup() as tasks:
        done = tasks.create_task(shutdown.wait_done())
        while not done.done():
            line = describe_progress(shutdown.progress())
            if line and line != last_line:
                report(line)
            last_line = line or last_line
            await asyncio.wait({done}, timeout=_POLL_SECONDS)
    with suppress(TimeoutError):
        async with asyncio.timeout(_REPORT_SECONDS):
            while not is_reported():  # noqa: ASYNC110 - no event to wait for
                await asyncio.sleep(_POLL_SECONDS)
    return shutdown.progress().left


ReportProgress = Callable[[str], None]


@runtime_checkable
class Drainable(Protocol):
    """An agent that can terminate its pods before it stops."""

    async def drain(self, report: ReportProgress) -> tuple[str, ...]:
        """Terminate all pods; return those that did not terminate in time."""


async def should_drain(settings: AgentSettings) -> bool:
    """True if `--on-stop` requires a drain before the agent stops."""
    if settings.on_stop != AUTO:
        return settings.on_stop == DRAIN
    return total_seconds(settings.shutdown_periods) > 0 and await is_shutting_down()


async def drain_before_stop(
    node: Drainable, agent_task: "asyncio.Task[None]", report: ReportProgress
) -> bool:
    """Drain the node unless the agent ends first; return True if all pods terminated."""
    draining = asyncio.ensure_future(node.drain(report))
    try:
        await asyncio.wait({agent_task, draining}, return_when=asyncio.FIRST_COMPLETED)
        if not draining.done():
            return False
        if left := draining.result():
            report(f"drain timed out, {describe_remaining(left)}")
        return not left
    finally:
        draining.cancel()


async def is_shutting_down(command: tuple[str, ...] = SYSTEMCTL_COMMAND) -> bool:
    """True if systemd reports the state `stopping`; False without systemd or on an error."""
    program = find_program(command[0])
    if program is None:
        return False
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            *command[1:],
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return False
    try:
        async with asyncio.timeout(_SYSTEMCTL_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        return False
    return output.strip() == b"stopping"
