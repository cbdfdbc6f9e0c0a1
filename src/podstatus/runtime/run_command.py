"""Run a command in a container and collect its result: for probes and hooks.

CommandError     the command could not be run
TimeoutError     the command took too long
"""

import msgspec

from podstatus.base.clock import Clock
from podstatus.base.timeouts import run_with_timeout
from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.port import Runtime
from podstatus.runtime.streams import (
    ProcessStream,
    RunsCommands,
    Streaming,
    StreamOptions,
    StreamUnavailableError,
)

MAX_OUTPUT_BYTES = 10 * 1024
"""Only the first bytes of the output are retained. Upstream's limit for probes."""


class CommandError(Exception):
    """The command could not be run; the message says why."""


class CommandResult(msgspec.Struct, frozen=True, kw_only=True):
    """Exit code and output of a command."""

    exit_code: int
    output: str
    """Standard output and error, interleaved; truncated to MAX_OUTPUT_BYTES."""


async def run_command(
    runtime: Runtime,
    uid: PodUID,
    container_id: str,
    command: tuple[str, ...],
    *,
    seconds: float | None,
    clock: Clock,
) -> CommandResult:
    """Run a command in a running container; its child processes end with it.

    The command is killed after `seconds`; None means no timeout. Raises CommandError and
    TimeoutError.
    """
    if isinstance(runtime, RunsCommands):
        call = _run_to_end(runtime, uid, container_id, command)
        return await run_with_timeout(seconds, clock, call)
    if not isinstance(runtime, Streaming):
        raise CommandError(f"the runtime {runtime.name} cannot run commands in containers")
    # On timeout the process is ended before this returns, so that retries do not pile up.
    return await run_with_timeout(seconds, clock, _run(runtime, uid, container_id, command))


async def _run_to_end(
    runtime: RunsCommands, uid: PodUID, container_id: str, command: tuple[str, ...]
) -> CommandResult:
    try:
        result = await runtime.exec_sync(uid, container_id, command)
    except StreamUnavailableError as error:
        raise CommandError(str(error)) from error
    output = result.output[:MAX_OUTPUT_BYTES].decode(errors="replace")
    return CommandResult(exit_code=result.exit_code, output=output)


async def _run(
    runtime: Streaming, uid: PodUID, container_id: str, command: tuple[str, ...]
) -> CommandResult:
    try:
        stream = await runtime.exec(uid, container_id, command, StreamOptions())
    except StreamUnavailableError as error:
        raise CommandError(str(error)) from error
    try:
        output = await _read(stream)
        return CommandResult(exit_code=await stream.wait(), output=output)
    finally:
        await stream.close()


async def _read(stream: ProcessStream) -> str:
    output = bytearray()
    while (piece := await stream.read()) is not None:
        output += piece[1][: MAX_OUTPUT_BYTES - len(output)]
    return output.decode(errors="replace")
