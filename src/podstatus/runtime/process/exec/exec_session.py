"""Exec session: a command that runs in a container for a client."""

import asyncio
import fcntl
import json
import os
import socket
import struct
import subprocess
import termios
from collections.abc import Mapping

from podstatus.base.clock import Clock
from podstatus.base.timeouts import wait_event_or_timeout
from podstatus.runtime.process.exec.pipes import PipeReader, PipeWriter
from podstatus.runtime.streams import OutputStream, StreamUnavailableError, TerminalSize

DRAIN_SECONDS = 1
"""How long background processes of an ended command may keep its output open."""
_CLOSE_TIMEOUT_SECONDS = 15
"""Time to end all processes; longer than the limit of the `nsenter` program."""
_KILLED_EXIT_CODE = 137
_MAX_MESSAGE_BYTES = 64 * 1024
_EOT = b"\x04"
_MAX_WINDOW_SIZE = 0xFFFF
_LFLAG = 3


class ProcessExecSession:
    """Connects a client with the `nsenter` program and with the command below it.

    The program reports over a socket when the command is executed, or why not, then its exit code.
    When the socket is closed, it kills all processes that were started.
    """

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        program: socket.socket,
        input: int | None,
        outputs: Mapping[int, OutputStream],
        clock: Clock,
    ) -> None:
        self._process = process
        self._control_socket = program
        self._control_socket.setblocking(False)
        self._clock = clock
        self._stdin = PipeWriter(input)
        self._outputs = PipeReader(outputs)
        self._terminal: int | None = None
        loop = asyncio.get_running_loop()
        self._started: asyncio.Future[None] = loop.create_future()
        self._exit_code: asyncio.Future[int] = loop.create_future()
        self._exited = asyncio.Event()
        self._drain_task: asyncio.Task[None] | None = None
        self._pidfd = os.pidfd_open(process.pid)
        loop.add_reader(self._pidfd, self._reap)
        loop.add_reader(self._control_socket, self._receive)

    async def wait_started(self) -> None:
        """Wait until the command is executed. Raises StreamUnavailableError if it cannot be."""
        await self._started

    async def read(self) -> tuple[OutputStream, bytes] | None:
        """Return the next chunk of output; None at the end."""
        return await self._outputs.read()

    async def write(self, data: bytes) -> None:
        """Write to standard input; blocks while the command does not read."""
        await self._stdin.write(data)

    async def close_stdin(self) -> None:
        """Close standard input; on a terminal, send the end-of-file character."""
        if self._terminal is None:
            self._stdin.close()
        elif termios.tcgetattr(self._terminal)[_LFLAG] & termios.ICANON:
            await self._stdin.write(_EOT)

    def resize(self, size: TerminalSize) -> None:
        if self._terminal is not None:
            rows, columns = (max(0, min(n, _MAX_WINDOW_SIZE)) for n in (size.rows, size.columns))
            fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    async def wait(self) -> int:
        """Wait for the exit code; 137 if the command was killed with its container."""
        return await asyncio.shield(self._exit_code)

    async def close(self) -> None:
        """End the session; return when no process of the command runs any more."""
        self._disconnect()
        await wait_event_or_timeout(self._exited, self._clock, _CLOSE_TIMEOUT_SECONDS)
        if not self._exited.is_set():
            self._process.kill()

    def _disconnect(self) -> None:
        if self._control_socket.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._control_socket)
            self._control_socket.close()
        self._on_exit(_KILLED_EXIT_CODE)
        if self._drain_task is not None:
            self._drain_task.cancel()
        self._stdin.close()
        self._outputs.close()
        if self._terminal is not None:
            os.close(self._terminal)
            self._terminal = None

    def _receive(self) -> None:
        try:
            message, descriptors, _, _ = socket.recv_fds(
                self._control_socket, _MAX_MESSAGE_BYTES, 1
            )
        except BlockingIOError:
            return
        except OSError:
            message, descriptors = b"", []
        if not message:
            asyncio.get_running_loop().remove_reader(self._control_socket)
            self._on_exit(_KILLED_EXIT_CODE)
            return
        report = json.loads(message)
        if "started" in report:
            self._on_started(descriptors)
        elif "exit" in report:
            self._on_exit(report["exit"])
        elif not self._started.done():
            self._started.set_exception(StreamUnavailableError(report["error"]))

    def _on_started(self, descriptors: list[int]) -> None:
        for terminal in descriptors:
            self._terminal = terminal
            self._stdin = PipeWriter(os.dup(terminal))
            self._outputs = PipeReader({os.dup(terminal): OutputStream.STDOUT})
        if not self._started.done():
            self._started.set_result(None)

    def _on_exit(self, code: int) -> None:
        if not self._started.done():
            self._started.set_exception(StreamUnavailableError("the container has ended"))
            # Mark the exception as retrieved: the waiter may be gone.
            self._started.exception()
        if not self._exit_code.done():
            self._exit_code.set_result(code)
            self._drain_task = asyncio.ensure_future(self._drain_later())

    async def _drain_later(self) -> None:
        await self._clock.wait(DRAIN_SECONDS)
        self._outputs.stop_at_buffered()

    def _reap(self) -> None:
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._process.wait()
        self._exited.set()
