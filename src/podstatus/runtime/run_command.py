"""Run a command in a container and see what came of it: for probes and hooks.

CannotRunCommandError     it could not be run at all; TimeoutError if it took too long
"""

import msgspec

from podstatus.base.aio import run_with_timeout
from podstatus.base.clock import Clock
from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.port import Runtime
from podstatus.runtime.streams import (
    ProcessStream,
    Streaming,
    StreamOptions,
    StreamUnavailableError,
)

MAX_OUTPUT_BYTES = 10 * 1024
"""Bytes of what a command writes that are kept: the first. Upstream's, for probes."""


class CommandError(Exception):
    """The command could not be run; the message says why."""


class CommandResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a command."""

    exit_code: int
    output: str
    """What it wrote, to standard output and error alike, and not all of it if it was much."""


async def run_command(
    runtime: Runtime,
    uid: PodUID,
    container_id: str,
    command: tuple[str, ...],
    *,
    seconds: float | None,
    clock: Clock,
) -> CommandResult:
    """Run a command where a running container is; whatever it started ends with it.

    It is ended after so many seconds; None: it may take as long as it likes. Raises
    CannotRunCommandError, and TimeoutError.
    """
    if not isinstance(runtime, Streaming):
        raise CommandError(f"the runtime {runtime.name} cannot run commands in containers")
    # What was started is ended before anybody starts it once more.
    return await run_with_timeout(seconds, clock, _run(runtime, uid, container_id, command))


async def _run(
    runtime: Streaming, uid: PodUID, container_id: str, command: tuple[str, ...]
) -> CommandResult:
    try:
        talk = await runtime.exec(uid, container_id, command, StreamOptions())
    except StreamUnavailableError as error:
        raise CommandError(str(error)) from error
    try:
        output = await _read(talk)
        return CommandResult(exit_code=await talk.wait(), output=output)
    finally:
        await talk.close()


async def _read(stream: ProcessStream) -> str:
    kept = bytearray()
    while (piece := await stream.read()) is not None:
        kept += piece[1][: MAX_OUTPUT_BYTES - len(kept)]
    return kept.decode(errors="replace")
