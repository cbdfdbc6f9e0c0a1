"""A command in bubblewrap: how bubblewrap is called, and what it reports about the command.

Bubblewrap writes one JSON object per line to a status file descriptor: `child-pid`, as seen from
outside, and `exit-code`, the latter only if the command was executed. Its errors go to stderr.

A command with a terminal is executed by setsid(1), as the leader of a session and process group of
its own pid namespace, with the terminal as the controlling one. Without it, the session would be
that of bubblewrap: inside, its process group is 0, which a shell cannot restore when it exits. The
terminal has no other users, so a command that simulates input (TIOCSTI) reaches itself only.
"""

import base64
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .bubblewrap_monitor import set_monitor_not_dumpable
from .processes import Process, find_process
from .records import LaunchSpec
from .start import Program, StartFailedError, encode
from .stderr_log import log_error

_PREFIX = "bwrap: "
_SETSID_PREFIX = "setsid: failed to execute "
_SETSID_CODES = (126, 127)
"""Exit codes of setsid if it cannot execute the command."""

_COMPARED_BYTES = 4096
"""Leading bytes of a command line that are compared; they cover the arguments passed here, so that
they distinguish bubblewrap from its command.
"""


class BubblewrapProcess:
    """Arguments of bubblewrap before its start; state of the command in it afterwards."""

    def __init__(self, launch: LaunchSpec) -> None:
        arguments = [encode(argument) for argument in launch.bubblewrap or ()]
        command = [encode(argument) for argument in launch.argv]
        if not arguments or not command:
            raise StartFailedError("no command")
        if launch.setsid:
            command = [encode(launch.setsid), b"-c", b"--", *command]
        host_paths = open_host_paths(launch.host_paths)
        for host_path, descriptor in zip(launch.host_paths, host_paths, strict=True):
            arguments[host_path["argument"]] = b"%d" % descriptor
        self.status_fd, writable = os.pipe()
        os.set_blocking(self.status_fd, False)
        nul_separated = b"".join(argument + b"\0" for argument in arguments[1:])
        descriptors = {b"--args": _memfd(nul_separated), b"--json-status-fd": writable}
        if launch.seccomp:
            descriptors[b"--seccomp"] = _memfd(base64.b64decode(launch.seccomp))
        options = [
            argument for name, file in descriptors.items() for argument in (name, b"%d" % file)
        ]
        argv = [arguments[0], *options, b"--", *command]
        # The sandbox of an ordinary user has its own user namespace and no privileges outside.
        traced = os.geteuid() == 0
        self.program = Program(argv, {}, "/", (*descriptors.values(), *host_paths), traced)
        # Empty: an execve is in progress, or the process has ended.
        self._command_lines_before = {b"", _command_line(argv)}
        if launch.setsid:
            self._command_lines_before.add(_command_line(command))
        self._has_setsid, self._was_seen = bool(launch.setsid), False
        self._unread = b""
        self.command: Process | None = None
        """The command, or the process that is about to execute it."""
        self.exit_code: int | None = None

    def on_started(self, pid: int) -> None:
        """Called once bubblewrap is executed: protect its monitor, close the descriptors it
        inherited.
        """
        if self.program.traced and not set_monitor_not_dumpable(pid):
            log_error("bubblewrap's monitor remains dumpable: it could not be traced")
        for file in self.program.inherited:
            os.close(file)

    def poll(self) -> bool:
        """Read bubblewrap's status; return whether the command was executed."""
        self._read_status()
        if self.exit_code is not None:
            return not self._may_be_setsid_error()
        if self.command is None:
            return False
        try:
            with Path(f"/proc/{self.command.pid}/cmdline").open("rb") as file:
                line = file.read(_COMPARED_BYTES)
        except OSError:
            return False
        now = find_process(self.command.pid)
        if now is None or now.start_ticks != self.command.start_ticks:
            return False
        self._was_seen = line not in self._command_lines_before
        return self._was_seen

    def start_error(self, output: bytes) -> str:
        """Return why the command was not executed, by its output; empty if it was."""
        if self.exit_code is None:
            return error_message(output)
        return setsid_error_message(output) if self._may_be_setsid_error() else ""

    def _may_be_setsid_error(self) -> bool:
        return self._has_setsid and not self._was_seen and self.exit_code in _SETSID_CODES

    def _read_status(self) -> None:
        try:
            while chunk := os.read(self.status_fd, 4096):
                self._unread += chunk
        except BlockingIOError:
            pass
        *lines, self._unread = self._unread.split(b"\n")
        for line in filter(None, lines):
            status = json.loads(line)
            if "child-pid" in status:
                pid = status["child-pid"]
                # A process that is already gone cannot be mistaken for another: no start time is 0.
                self.command = find_process(pid) or Process(pid, 0, 0)
            if "exit-code" in status:
                self.exit_code = status["exit-code"]


def error_message(output: bytes) -> str:
    """Translate bubblewrap's last error into the wording of other container runtimes."""
    lines = output.decode(errors="replace").replace("\r\n", "\n").splitlines()
    own = [line for line in lines if line.startswith(_PREFIX)]
    if not own:
        return "bubblewrap ended before the command was executed"
    error = own[-1].removeprefix(_PREFIX)
    for prefix, replacement in (("execvp ", 'exec: "'), ("Can't chdir to ", 'chdir "')):
        subject, colon, reason = error.removeprefix(prefix).rpartition(": ")
        if error.startswith(prefix) and colon:
            return f'{replacement}{subject}": {reason.lower()}'
    return f"bubblewrap: {error}"


def setsid_error_message(output: bytes) -> str:
    """Translate setsid's error; empty if the output is anything else."""
    error = output.decode(errors="replace").strip()
    subject, colon, reason = error.removeprefix(_SETSID_PREFIX).rpartition(": ")
    if not error.startswith(_SETSID_PREFIX) or not colon or "\n" in error:
        return ""
    return f'exec: "{subject}": {reason.lower()}'


def _memfd(content: bytes) -> int:
    file = os.memfd_create("bubblewrap")
    with open(file, "wb", closefd=False) as writer:  # os.write may write only a part
        writer.write(content)
    os.lseek(file, 0, os.SEEK_SET)
    return file


def _command_line(argv: list[bytes]) -> bytes:
    return (b"\0".join(argv) + b"\0")[:_COMPARED_BYTES]


_PATH_FLAGS = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def open_host_paths(host_paths: Sequence[Mapping[str, Any]]) -> list[int]:
    """Open each `records.HostPathArgument`, if it is what the agent has checked.

    Between the agent's check and the mount, another pod may replace a folder by a symbolic link.
    Each path is therefore opened component by component without following links, and the result
    must be the same inode. Bubblewrap receives the open descriptor. Raises StartFailedError.
    """
    opened: list[int] = []
    try:
        for path in host_paths:
            # In a loop: on an error, those opened before are closed.
            opened.append(_open_verified(path["path"], path["device"], path["inode"]))  # noqa: PERF401
    except BaseException:
        for file in opened:
            os.close(file)
        raise
    return opened


def _open_verified(path: str, device: int, inode: int) -> int:
    try:
        file = _walk(path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StartFailedError(f'hostPath "{path}": {reason}') from error
    status = os.fstat(file)
    if (status.st_dev, status.st_ino) != (device, inode):
        os.close(file)
        raise StartFailedError(f'hostPath "{path}": replaced while the container started')
    return file


def _walk(path: str) -> int:
    """Open a path without following links; a link itself is not the checked inode."""
    folder = os.open("/", _PATH_FLAGS | os.O_DIRECTORY)
    for name in filter(None, path.split("/")):
        try:
            child = os.open(name, _PATH_FLAGS, dir_fd=folder)
        finally:
            os.close(folder)
        folder = child
    return folder
