"""Detect with systemd whether this machine is shutting down."""

import asyncio
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import suppress

from podstatus.base.programs import find_program

_TIMEOUT_SECONDS = 1.0
"""Timeout of systemctl; the agent itself must stop within 5 s."""
SYSTEMCTL_COMMAND = ("systemctl", "is-system-running")


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
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        return False
    return output.strip() == b"stopping"
