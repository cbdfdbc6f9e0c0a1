"""A command that was started for somebody to talk to, where a container is."""

import asyncio
import fcntl
import json
import os
import socket
import struct
import subprocess
import termios
from collections.abc import Mapping

from podstatus.base.aio import wait_event_or_timeout
from podstatus.base.clock import Clock
from podstatus.runtime.process.exec.pipes import Input, Outputs
from podstatus.runtime.streams import Channel, NoStreamError, TerminalSize

LINGER_SECONDS = 1
"""How long what the command left behind may keep its output open after its end."""
_PATIENCE_SECONDS = 15
"""How long it may take to end all of it; longer than the program inside tries."""
_KILLED = 137
_MESSAGE_BYTES = 64 * 1024
_END_OF_INPUT = b"\x04"
_LARGEST = 0xFFFF
_LOCAL_MODES = 3


class Executed:
    """Talks to the program `inside`, by a socket, and to the command that runs below it.

    The program tells when the command is executed or why not, then its exit code. When the
    socket is closed it ends all that was started.
    """

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        program: socket.socket,
        input: int | None,
        outputs: Mapping[int, Channel],
        clock: Clock,
    ) -> None:
        self._process = process
        self._program = program
        self._program.setblocking(False)
        self._clock = clock
        self._input = Input(input)
        self._outputs = Outputs(outputs)
        self._terminal: int | None = None
        loop = asyncio.get_running_loop()
        self._started: asyncio.Future[None] = loop.create_future()
        self._code: asyncio.Future[int] = loop.create_future()
        self._gone = asyncio.Event()
        self._lingering: asyncio.Task[None] | None = None
        self._handle = os.pidfd_open(process.pid)
        loop.add_reader(self._handle, self._reap)
        loop.add_reader(self._program, self._hear)

    async def until_started(self) -> None:
        """Come back when the command is executed. Raises NoStreamError if it cannot be."""
        await self._started

    async def read(self) -> tuple[Channel, bytes] | None:
        """The next piece it wrote; None when there is no more."""
        return await self._outputs.read()

    async def write(self, data: bytes) -> None:
        """Hand it input; it is held up while the command does not read."""
        await self._input.write(data)

    async def end_input(self) -> None:
        """Close its input; on a terminal, what a user would type for that."""
        if self._terminal is None:
            self._input.close()
        elif termios.tcgetattr(self._terminal)[_LOCAL_MODES] & termios.ICANON:
            await self._input.write(_END_OF_INPUT)

    def resize(self, size: TerminalSize) -> None:
        """Tell it how large the terminal is, if it has one."""
        if self._terminal is not None:
            rows, columns = (max(0, min(n, _LARGEST)) for n in (size.rows, size.columns))
            fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    async def wait(self) -> int:
        """The exit code; 137 if it went down with its container."""
        return await asyncio.shield(self._code)

    async def close(self) -> None:
        """Hang up, and come back when nothing of it runs any more."""
        self._hang_up()
        await wait_event_or_timeout(self._gone, self._clock, _PATIENCE_SECONDS)
        if not self._gone.is_set():
            self._process.kill()

    def _hang_up(self) -> None:
        if self._program.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._program)
            self._program.close()
        self._end(_KILLED)
        if self._lingering is not None:
            self._lingering.cancel()
        self._input.close()
        self._outputs.close()
        if self._terminal is not None:
            os.close(self._terminal)
            self._terminal = None

    def _hear(self) -> None:
        try:
            message, opened, _, _ = socket.recv_fds(self._program, _MESSAGE_BYTES, 1)
        except BlockingIOError:
            return
        except OSError:
            message, opened = b"", []
        if not message:
            asyncio.get_running_loop().remove_reader(self._program)
            self._end(_KILLED)
            return
        said = json.loads(message)
        if "started" in said:
            self._begin(opened)
        elif "exit" in said:
            self._end(said["exit"])
        elif not self._started.done():
            self._started.set_exception(NoStreamError(said["error"]))

    def _begin(self, opened: list[int]) -> None:
        for terminal in opened:
            self._terminal = terminal
            self._input = Input(os.dup(terminal))
            self._outputs = Outputs({os.dup(terminal): Channel.OUT})
        if not self._started.done():
            self._started.set_result(None)

    def _end(self, code: int) -> None:
        if not self._started.done():
            self._started.set_exception(NoStreamError("the container has ended"))
            # Who was waiting may be gone.
            self._started.exception()
        if not self._code.done():
            self._code.set_result(code)
            self._lingering = asyncio.ensure_future(self._linger())

    async def _linger(self) -> None:
        await self._clock.wait(LINGER_SECONDS)
        self._outputs.end_soon()

    def _reap(self) -> None:
        asyncio.get_running_loop().remove_reader(self._handle)
        os.close(self._handle)
        self._process.wait()
        self._gone.set()
