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

from podstatus.client.auth.exec_plugin.exec_credential import (
    InvalidExecCredentialError,
    PluginCredential,
    exec_info,
    parse_credential,
)
from podstatus.client.auth.exec_plugin.output_redaction import redact_line
from podstatus.client.config_errors import CredentialsError
from podstatus.client.kubeconfig.model import Cluster, ExecPlugin
from podstatus.client.kubeconfig.validate import ALWAYS, NEVER

MAX_OUTPUT_BYTES = 2**20
"""More than any credential needs."""
_MAX_ERROR_BYTES = 2**14
"""The last bytes of stderr are kept, from the start of a line: part of a line may be part of a
token without the word before it that marks it as secret."""
_DRAIN_SECONDS = 0.5
"""Maximum wait for output after the command has exited: a child process may hold the pipe open."""
_KILL_SECONDS = 1.0
"""Maximum wait for the exit of killed processes; the guard continues as long as needed."""
_GUARD = Path(__file__).with_name("process_guard.py")


class CompletedProcess(msgspec.Struct, frozen=True, kw_only=True):
    code: int | None
    """Exit code; None after a timeout, negative if a signal killed the command."""
    output: bytes
    errors: str

    def __repr__(self) -> str:
        return f"CompletedProcess(code={self.code})"


async def run_plugin(
    command: Sequence[str], environment: Mapping[str, str], *, seconds: float, interactive: bool
) -> CompletedProcess:
    """Run a command; kill it after `seconds`, with all processes that it started.

    Processes that a failed command left behind are killed, too. An interactive command uses this
    terminal for stdin and stderr, and stays in this process group. Raises OSError if the command
    cannot be started.
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
    """Have the guard kill all processes that were started, and wait a moment for it."""
    # Shut down, not closed: the error number is read from it afterwards.
    control.shutdown(socket.SHUT_WR)
    with suppress(TimeoutError, OSError):
        async with asyncio.timeout(_KILL_SECONDS):
            await process.wait()


def _check_started(control: socket.socket) -> None:
    """Raise the OSError with which the guard could not start the command, if any."""
    control.setblocking(False)
    try:
        number = control.recv(16)
    except BlockingIOError:
        return
    if number:
        raise OSError(int(number), os.strerror(int(number)))


class _Pipe:
    """Keeps the first or last `max_bytes` of a pipe; the rest is read and dropped.

    Not an asyncio pipe: with those, some Python versions report the exit of a process only after
    all its children have closed the pipe.
    """

    def __init__(self, max_bytes: int, *, last: bool = False) -> None:
        self._max_bytes = max_bytes
        self._last = last
        self._reader, self.writer = os.pipe()
        self._loop = asyncio.get_running_loop()
        self.content = b""
        self._is_truncated = False
        """Whether the next data belongs to a line whose start was dropped."""
        self.ended = asyncio.Event()

    def begin(self) -> None:
        """Start to read, after the process has inherited the other end."""
        os.close(self.writer)
        self.writer = -1
        os.set_blocking(self._reader, False)
        self._loop.add_reader(self._reader, self._read)

    def close(self) -> None:
        """Stop reading and close both ends."""
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
        # Drop the rest of a truncated line in later data, too.
        _, end, rest = joined[-self._max_bytes :].partition(b"\n")
        self._is_truncated = not end
        return rest


PLUGIN_SECONDS = 8.0
"""Timeout of a plugin; callers with a timeout of 10 s still get its error."""
_INTERACTIVE_SECONDS = 120.0
"""Timeout of an interactive plugin."""


class PluginCommand:
    """The command of a plugin for one cluster."""

    def __init__(
        self, plugin: ExecPlugin, cluster: Cluster, *, seconds: float = PLUGIN_SECONDS
    ) -> None:
        self._plugin = plugin
        self._cluster = cluster
        self._seconds = seconds

    @property
    def name(self) -> str:
        """Return the name of the plugin for messages."""
        return f"exec plugin {self._plugin.command}"

    async def run(self, authority: bytes) -> PluginCredential:
        """Run the plugin once. Raises CredentialsError with a message of one line."""
        interactive = self._is_interactive()
        command = [self._resolve_command(), *self._plugin.args]
        info = exec_info(self._plugin, self._cluster, authority, interactive=interactive)
        own = {variable.name: variable.value for variable in self._plugin.env}
        environment = {**os.environ, **own, "KUBERNETES_EXEC_INFO": info}
        seconds = max(self._seconds, _INTERACTIVE_SECONDS) if interactive else self._seconds
        try:
            result = await run_plugin(
                command, environment, seconds=seconds, interactive=interactive
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            raise self._failed(
                f"cannot be run ({reason or 'bad command'}); {self._hint()}"
            ) from None
        return self._parse_result(result, seconds)

    def _parse_result(self, result: CompletedProcess, seconds: float) -> PluginCredential:
        if result.code is None:
            raise self._failed(
                f"did not exit within {seconds:g} s and was killed{_stderr_suffix(result)}; "
                "run it manually to see what it waits for"
            )
        if result.code != 0:
            raise self._failed(
                f"{_exit_phrase(result.code)}{_stderr_suffix(result)}; run it manually, or log in"
            )
        if len(result.output) > MAX_OUTPUT_BYTES:
            raise self._failed("printed more than 1 MiB; it must print only an ExecCredential")
        try:
            return parse_credential(result.output, self._plugin.api_version)
        except InvalidExecCredentialError as error:
            raise self._failed(f"failed: {error}; run it manually to check its output") from None

    def _is_interactive(self) -> bool:
        """Whether the plugin gets this terminal. Raises CredentialsError if it needs one."""
        mode = self._plugin.interactive_mode
        if mode == NEVER:
            return False
        has_terminal = _is_terminal()
        if mode == ALWAYS and not has_terminal:
            raise self._failed(
                "is interactive, but standard input is not a terminal; use other credentials, or "
                "run this command in a terminal"
            )
        return has_terminal

    def _resolve_command(self) -> str:
        """Return the path of the command: a path unchanged, a name from this process's PATH."""
        command = self._plugin.command
        path = shutil.which(command)
        if path is None and "/" in command and Path(command).is_file():
            raise self._failed("is not executable; make it executable")
        if path is None:
            where = "" if "/" in command else " on the PATH"
            raise self._failed(f"was not found{where}; {self._hint()}")
        if not Path(path).is_absolute():
            # Upstream: exec.ErrDot. A command must not depend on the current directory.
            raise self._failed("was found by a relative PATH only; specify its full path")
        return path

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
    return f"failed with exit code {code}" if code > 0 else f"was killed by signal {-code}"


def _stderr_suffix(result: CompletedProcess) -> str:
    line = redact_line(result.errors)
    return f" ({line})" if line else ""
