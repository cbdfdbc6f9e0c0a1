"""Run an exec plugin and parse its credential.

No shell; a plugin that exceeds its timeout is killed with all processes that it started.
"""

import asyncio
import os
import shutil
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from podstatus.client.auth.exec_credential import (
    InvalidExecCredentialError,
    PluginCredential,
    exec_info,
    parse_credential,
)
from podstatus.client.auth.output_redaction import redact_line
from podstatus.client.errors import CredentialsError
from podstatus.client.kubeconfig.model import Cluster, ExecPlugin
from podstatus.client.kubeconfig.validate import ALWAYS, NEVER

MAX_OUTPUT_BYTES = 2**20
"""More than any credential needs."""
_MAX_ERROR_BYTES = 2**14
"""Of what it complains about, the last bytes are kept, from the beginning of a line: half a line
may be half a token, without the word before it that says so."""
_DRAIN_SECONDS = 0.5
"""How long output is awaited after the command has ended: a child of it may hold the pipe."""
_KILL_SECONDS = 1.0
"""How long the end of what is killed is awaited; its guard goes on for as long as it takes."""
_GUARD = Path(__file__).with_name("plugin_guard.py")


class CompletedProcess(msgspec.Struct, frozen=True, kw_only=True):
    """How a command ended."""

    code: int | None
    """None if it did not end in time; negative if a signal ended it."""
    output: bytes
    errors: str

    def __repr__(self) -> str:
        return f"Ran(code={self.code})"


async def run_plugin(
    command: Sequence[str], environment: Mapping[str, str], *, seconds: float, interactive: bool
) -> CompletedProcess:
    """Run a command. One that takes too long is killed, with all that it started.

    So is what one that fails has left behind. An interactive one has our terminal for input and
    complaints, and stays in our group of processes. Raises OSError if it cannot be started.
    """
    output, errors = _Pipe(MAX_OUTPUT_BYTES + 1), _Pipe(_MAX_ERROR_BYTES, last=True)
    control, theirs = socket.socketpair()
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(_GUARD), str(theirs.fileno())),
            *command,
            pass_fds=(theirs.fileno(),),
            stdin=None if interactive else asyncio.subprocess.DEVNULL,
            stdout=output.writer,
            stderr=None if interactive else errors.writer,
            env=environment,
            start_new_session=not interactive,
        )
        theirs.close()
        output.begin()
        errors.begin()
        code = await _wait(process, (output, errors), seconds, control)
        _check_started(control)
    finally:
        theirs.close()
        control.close()
        output.close()
        errors.close()
    return CompletedProcess(
        code=code, output=output.content, errors=errors.content.decode(errors="replace")
    )


async def _wait(
    process: asyncio.subprocess.Process,
    pipes: Sequence["_Pipe"],
    seconds: float,
    control: socket.socket,
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
            await _kill(process, control)
    await _drain_pipes(pipes)
    return code


async def _drain_pipes(pipes: Sequence["_Pipe"]) -> None:
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            for pipe in pipes:
                await pipe.ended.wait()
    except TimeoutError:
        return


async def _kill(process: asyncio.subprocess.Process, control: socket.socket) -> None:
    """Order the guard to end all that was started, and wait a moment for it."""
    # Shut down, not closed: it is to be read afterwards.
    control.shutdown(socket.SHUT_WR)
    with suppress(TimeoutError, OSError):
        async with asyncio.timeout(_KILL_SECONDS):
            await process.wait()


def _check_started(control: socket.socket) -> None:
    """Raise the error that the guard met when it started the command."""
    control.setblocking(False)
    try:
        number = control.recv(16)
    except BlockingIOError:
        return
    if number:
        raise OSError(int(number), os.strerror(int(number)))


class _Pipe:
    """What is written into a pipe, as far as it is wanted; the rest is read and dropped.

    Not a pipe of asyncio's own: with those the end of a process is seen only once all that it
    started has closed them, in some versions of Python.
    """

    def __init__(self, max_bytes: int, *, last: bool = False) -> None:
        self._max_bytes = max_bytes
        self._last = last
        self._reader, self.writer = os.pipe()
        self._loop = asyncio.get_running_loop()
        self.content = b""
        self._is_truncated = False
        """Whether what comes next belongs to a line whose beginning is gone."""
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
        joined = self.content + part if self._last or len(self.content) < self._max_bytes else None
        if joined is not None:
            self.content = self._last_lines(joined) if self._last else joined[: self._max_bytes]

    def _last_lines(self, joined: bytes) -> bytes:
        if len(joined) <= self._max_bytes and not self._is_truncated:
            return joined
        # Also of what follows: the line that was cut goes on until its end.
        _, end, rest = joined[-self._max_bytes :].partition(b"\n")
        self._is_truncated = not end
        return rest


PLUGIN_SECONDS = 8.0
"""How long a plugin may take: a caller who wants to know within ten seconds still does."""
_INTERACTIVE_SECONDS = 120.0
"""How long one may take that talks with a person."""


class PluginCommand:
    """One plugin, for one cluster."""

    def __init__(
        self, plugin: ExecPlugin, cluster: Cluster, *, seconds: float = PLUGIN_SECONDS
    ) -> None:
        self._plugin = plugin
        self._cluster = cluster
        self._seconds = seconds

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return f"exec plugin {self._plugin.command}"

    async def run(self, authority: bytes) -> PluginCredential:
        """Run it once. Raises CredentialsError, with one line about what happened."""
        interactive = self._is_interactive()
        command = [self._resolve_command(), *self._plugin.args]
        info = exec_info(self._plugin, self._cluster, authority, interactive=interactive)
        environment = {**os.environ, **dict(self._plugin.env), "KUBERNETES_EXEC_INFO": info}
        seconds = max(self._seconds, _INTERACTIVE_SECONDS) if interactive else self._seconds
        try:
            ran = await run_plugin(command, environment, seconds=seconds, interactive=interactive)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else None
            raise self._failed(f"cannot be run ({why or 'bad command'}); {self._hint()}") from None
        return self._parse_result(ran, seconds)

    def _parse_result(self, result: CompletedProcess, seconds: float) -> PluginCredential:
        if result.code is None:
            raise self._failed(
                f"did not end within {seconds:g} s and was killed{_stderr_suffix(result)}; "
                "run it by hand to see what it waits for"
            )
        if result.code != 0:
            raise self._failed(
                f"{_exit_phrase(result.code)}{_stderr_suffix(result)}; run it by hand, or log in"
            )
        if len(result.output) > MAX_OUTPUT_BYTES:
            raise self._failed("printed more than 1 MiB; it has to print an ExecCredential alone")
        try:
            return parse_credential(result.output, self._plugin.api_version)
        except InvalidExecCredentialError as error:
            raise self._failed(f"is of no use: {error}; run it by hand to see") from None

    def _is_interactive(self) -> bool:
        """Whether it gets our terminal."""
        mode = self._plugin.interactive_mode
        if mode == NEVER:
            return False
        has_terminal = _is_terminal()
        if mode == ALWAYS and not has_terminal:
            raise self._failed(
                "wants to talk with a person, but standard input is no terminal; log in by other "
                "means, or start this in a terminal"
            )
        return has_terminal

    def _resolve_command(self) -> str:
        """Where the command is: a path as it is, a name on our own PATH."""
        command = self._plugin.command
        found = shutil.which(command)
        if found is None and "/" in command and Path(command).is_file():
            raise self._failed("may not be executed; make it executable")
        if found is None:
            where = "" if "/" in command else " on the PATH"
            raise self._failed(f"is not there{where}; {self._hint()}")
        if not Path(found).is_absolute():
            # Upstream: exec.ErrDot. A command must not depend on where we happen to be.
            raise self._failed("was found by a relative PATH only; name it with its folder")
        return found

    def _hint(self) -> str:
        return self._plugin.install_hint or "install it, or correct `command`"

    def _failed(self, what: str) -> CredentialsError:
        return CredentialsError(f"{self.name} {what}")


def _is_terminal() -> bool:
    try:
        return sys.stdin is not None and os.isatty(sys.stdin.fileno())
    except (OSError, ValueError):
        return False


def _exit_phrase(code: int) -> str:
    return f"failed with exit code {code}" if code > 0 else f"was ended by signal {-code}"


def _stderr_suffix(result: CompletedProcess) -> str:
    line = redact_line(result.errors)
    return f" ({line})" if line else ""
