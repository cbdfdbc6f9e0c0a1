"""One process of a supervised agent: its output, its health reports, its end by force.

All pipes are our own and not those of asyncio, whose `wait` returns only when every process that
has inherited one is gone, too.
"""

import asyncio
import os
import signal
from asyncio.subprocess import Process
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import BinaryIO

import msgspec

from podstatus.agent.daemon.decide.hang import HealthReport
from podstatus.agent.daemon.health_reporter import HEALTH_FD_VARIABLE
from podstatus.base.msgspec_json import decode_json

_OUTPUT_SECONDS = 1.0
"""Wait for the rest of the output; a process that the agent started may hold the pipe open."""
_MAX_LINES = 20
_MAX_LINE_BYTES = 500
_MAX_STACK_BYTES = 2**18
_READ_BYTES = 2**16


class AgentChild:
    """Starts the agent and follows it until it exits. Use it once."""

    def __init__(
        self,
        write_stderr: Callable[[bytes], object],
        on_report: Callable[[HealthReport], object],
    ) -> None:
        self._write_stderr = write_stderr
        self._on_report = on_report
        self._process: Process | None = None
        self._early_signal: int | None = None
        self._exited = asyncio.Event()
        self._lines: deque[bytes] = deque(maxlen=_MAX_LINES)
        self._rest = b""
        self._output_since_abort: bytearray | None = None

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not exited."""
        return self._process is not None and not self._exited.is_set()

    @property
    def last_lines(self) -> tuple[str, ...]:
        """The last lines of its standard error, without the stacks."""
        rest = [self._rest] if self._rest.strip() else []
        return tuple(line.decode(errors="replace").rstrip() for line in (*self._lines, *rest))

    @property
    def stacks(self) -> bytes:
        """Its output since `abort`: the stacks of all threads; empty if it was not aborted."""
        return bytes(self._output_since_abort or b"")

    async def run(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """Start it, return its exit code once it has exited. Raises OSError."""
        with ExitStack() as pipes:
            # Its standard input closes when this process dies, and the agent stops then.
            stdin, _held_open = _pipe(pipes)
            errors, stderr = _pipe(pipes)
            reports, report_to = _pipe(pipes)
            # A new session: Ctrl-C reaches the child only once, through `send_signal`.
            self._process = process = await asyncio.create_subprocess_exec(
                *command,
                stdin=stdin,
                stderr=stderr,
                env={**environment, HEALTH_FD_VARIABLE: str(report_to.fileno())},
                pass_fds=(report_to.fileno(),),
                start_new_session=True,
            )
            for ours_no_more in (stdin, stderr, report_to):
                ours_no_more.close()
            if self._early_signal is not None:
                self.send_signal(self._early_signal)
            return await self._follow(process, errors, reports)

    async def _follow(self, process: Process, errors: BinaryIO, reports: BinaryIO) -> int:
        async with asyncio.TaskGroup() as tasks:
            output = tasks.create_task(_read_all(errors, self._add_output))
            health = tasks.create_task(_read_all(reports, _Lines(self._add_report).feed))
            code = await process.wait()
            self._exited.set()
            await asyncio.wait((output,), timeout=_OUTPUT_SECONDS)
            output.cancel()
            health.cancel()
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has exited; once it is started, if it is not yet."""
        if self._process is None:
            self._early_signal = number
        elif self._process.returncode is None:
            # Not by the method of Process: it may reap a process that has just exited, and then
            # asyncio reports 255 for its exit code.
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, number)

    async def abort(self, seconds: float) -> None:
        """End it by SIGABRT, upon which it writes the stacks of all threads; then by SIGKILL.

        SIGCONT follows, since a stopped process handles no signals; it handles SIGABRT first.
        """
        self._output_since_abort = bytearray()
        self.send_signal(signal.SIGABRT)
        self.send_signal(signal.SIGCONT)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._exited.wait()
        self.send_signal(signal.SIGKILL)

    def _add_output(self, chunk: bytes) -> None:
        self._write_stderr(chunk)
        if self._output_since_abort is not None:
            free = _MAX_STACK_BYTES - len(self._output_since_abort)
            self._output_since_abort += chunk[:free]
            return
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._lines.extend(line[:_MAX_LINE_BYTES] for line in lines if line.strip())
        self._rest = rest[:_MAX_LINE_BYTES]

    def _add_report(self, line: bytes) -> None:
        with suppress(msgspec.MsgspecError):  # cut off, as by the end of the process
            self._on_report(decode_json(line, HealthReport))


class _Lines:
    """Splits a stream into lines."""

    def __init__(self, on_line: Callable[[bytes], None]) -> None:
        self._on_line = on_line
        self._rest = b""

    def feed(self, chunk: bytes) -> None:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._on_line(line)


async def _read_all(pipe: BinaryIO, on_chunk: Callable[[bytes], None]) -> None:
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    try:
        while chunk := await reader.read(_READ_BYTES):
            on_chunk(chunk)
    finally:
        transport.close()


def _pipe(pipes: ExitStack) -> tuple[BinaryIO, BinaryIO]:
    """A pipe whose ends are closed with the stack."""
    read, write = os.pipe()
    return (
        pipes.enter_context(os.fdopen(read, "rb", buffering=0)),
        pipes.enter_context(os.fdopen(write, "wb", buffering=0)),
    )
