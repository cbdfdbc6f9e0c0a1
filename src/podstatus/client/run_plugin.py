"""Run a command for what it prints: no shell, no waiting without end, nothing left behind."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence

import msgspec

MOST_OUTPUT = 2**20
"""More than any credential needs."""
_MOST_ERRORS = 2**14
"""Of what it complains about, the last bytes are kept."""
_STRAGGLER_SECONDS = 0.5
"""How long output is awaited after the command has ended: a child of it may hold the pipe."""
_KILL_SECONDS = 1.0


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """How a command ended."""

    code: int | None
    """None if it did not end in time; negative if a signal ended it."""
    output: bytes
    errors: str

    def __repr__(self) -> str:
        return f"Ran(code={self.code})"


async def run_plugin(
    command: Sequence[str], environment: Mapping[str, str], *, seconds: float, interactive: bool
) -> Ran:
    """Run a command. One that takes too long is killed, with all that it started.

    An interactive one has our terminal for input and complaints. It then has to stay in our
    group of processes, and only it can be killed. Raises OSError if it cannot be started.
    """
    output, errors = _Pipe(MOST_OUTPUT + 1), _Pipe(_MOST_ERRORS, last=True)
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=None if interactive else asyncio.subprocess.DEVNULL,
            stdout=output.writer,
            stderr=None if interactive else errors.writer,
            env=environment,
            start_new_session=not interactive,
        )
        output.begin()
        errors.begin()
        code = await _ended(process, (output, errors), seconds, has_group=not interactive)
    finally:
        output.close()
        errors.close()
    return Ran(code=code, output=output.content, errors=errors.content.decode(errors="replace"))


async def _ended(
    process: asyncio.subprocess.Process,
    pipes: Sequence["_Pipe"],
    seconds: float,
    *,
    has_group: bool,
) -> int | None:
    ended = False
    try:
        async with asyncio.timeout(seconds):
            code = await process.wait()
            ended = True
    except TimeoutError:
        return None
    finally:
        if not ended:
            await _kill(process, has_group=has_group)
    await _drained(pipes)
    return code


async def _drained(pipes: Sequence["_Pipe"]) -> None:
    try:
        async with asyncio.timeout(_STRAGGLER_SECONDS):
            for pipe in pipes:
                await pipe.ended.wait()
    except TimeoutError:
        return


async def _kill(process: asyncio.subprocess.Process, *, has_group: bool) -> None:
    try:
        if has_group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except ProcessLookupError:
        return
    try:
        async with asyncio.timeout(_KILL_SECONDS):
            await process.wait()
    except TimeoutError:
        # It hangs in the kernel; whoever waits must not.
        return


class _Pipe:
    """What is written into a pipe, as far as it is wanted; the rest is read and dropped.

    Not a pipe of asyncio's own: with those the end of a process is seen only once all that it
    started has closed them, in some versions of Python.
    """

    def __init__(self, most: int, *, last: bool = False) -> None:
        self._most = most
        self._last = last
        self._reader, self.writer = os.pipe()
        self._loop = asyncio.get_running_loop()
        self._is_open = True
        self.content = b""
        self.ended = asyncio.Event()

    def begin(self) -> None:
        """Read, now that the process has its end."""
        os.close(self.writer)
        self.writer = -1
        os.set_blocking(self._reader, False)
        self._loop.add_reader(self._reader, self._read)

    def close(self) -> None:
        """Read no more."""
        if self.writer >= 0:
            os.close(self.writer)
        self._loop.remove_reader(self._reader)
        os.close(self._reader)

    def _read(self) -> None:
        try:
            part = os.read(self._reader, 2**16)
        except BlockingIOError:
            return
        if not part:
            self._loop.remove_reader(self._reader)
            self.ended.set()
        joined = self.content + part if self._last or len(self.content) < self._most else None
        if joined is not None:
            self.content = joined[-self._most :] if self._last else joined[: self._most]
