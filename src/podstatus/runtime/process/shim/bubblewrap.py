"""A command inside of bubblewrap: how it is called, and what it tells of the command.

It tells on a file of its own, a line of JSON each: `child-pid`, as seen from outside, and
`exit-code`, the latter only if the command could be executed. What it cannot do it says on stderr.
"""

import base64
import json
import os
from pathlib import Path

from .bubblewrap_monitor import set_monitor_not_dumpable
from .host_paths import open_host_paths
from .processes import Process, find_process
from .records import LaunchSpec
from .start import Program, StartFailedError, encode
from .stderr_log import log_error

_PREFIX = "bwrap: "

_COMPARED_BYTES = 4096
"""Bytes of a command line that tell it from bubblewrap's: enough for its arguments of ours."""


class BubblewrapProcess:
    """Bubblewrap, to be started, and then what is known of the command in it."""

    def __init__(self, launch: LaunchSpec) -> None:
        arguments = [encode(argument) for argument in launch.bubblewrap or ()]
        command = [encode(argument) for argument in launch.argv]
        if not arguments or not command:
            raise StartFailedError("no command")
        host_paths = open_host_paths(launch.host_paths)
        for wanted, opened in zip(launch.host_paths, host_paths, strict=True):
            arguments[wanted["argument"]] = b"%d" % opened
        self.status_fd, writable = os.pipe()
        os.set_blocking(self.status_fd, False)
        words = b"".join(argument + b"\0" for argument in arguments[1:])
        handed = {b"--args": _memfd(words), b"--json-status-fd": writable}
        if launch.seccomp:
            handed[b"--seccomp"] = _memfd(base64.b64decode(launch.seccomp))
        options = [word for name, file in handed.items() for word in (name, b"%d" % file)]
        argv = [arguments[0], *options, b"--", *command]
        # An ordinary user's sandbox has a user namespace of its own, and no rights outside of it.
        traced = os.geteuid() == 0
        self.program = Program(argv, {}, "/", (*handed.values(), *host_paths), traced)
        self._own_command_line = _command_line(argv)
        self._unread = b""
        self.command: Process | None = None
        """The command, or what will become it."""
        self.exit_code: int | None = None

    def on_started(self, pid: int) -> None:
        """Bubblewrap is executed: it has its own of our files now, and is to be hidden."""
        if self.program.traced and not set_monitor_not_dumpable(pid):
            log_error("bubblewrap's monitor stays dumpable: it could not be traced")
        for file in self.program.inherited:
            os.close(file)

    def poll(self) -> bool:
        """Take in what it tells; whether the command was executed."""
        self._read_status()
        if self.exit_code is not None:
            return True
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
        # Empty: in the middle of being executed, or ended.
        return line not in (b"", self._own_command_line)

    def _read_status(self) -> None:
        try:
            while piece := os.read(self.status_fd, 4096):
                self._unread += piece
        except BlockingIOError:
            pass
        *lines, self._unread = self._unread.split(b"\n")
        for line in filter(None, lines):
            told = json.loads(line)
            if "child-pid" in told:
                pid = told["child-pid"]
                # One that is gone already cannot be mistaken for another: nothing starts at 0.
                self.command = find_process(pid) or Process(pid, 0, 0)
            if "exit-code" in told:
                self.exit_code = told["exit-code"]


def error_message(output: bytes) -> str:
    """What bubblewrap could not do, in the words of those who start containers otherwise."""
    lines = output.decode(errors="replace").replace("\r\n", "\n").splitlines()
    own = [line for line in lines if line.startswith(_PREFIX)]
    if not own:
        return "bubblewrap ended before the command was executed"
    words = own[-1].removeprefix(_PREFIX)
    for theirs, ours in (("execvp ", 'exec: "'), ("Can't chdir to ", 'chdir "')):
        what, colon, why = words.removeprefix(theirs).rpartition(": ")
        if words.startswith(theirs) and colon:
            return f'{ours}{what}": {why.lower()}'
    return f"bubblewrap: {words}"


def _memfd(content: bytes) -> int:
    file = os.memfd_create("bubblewrap")
    with open(file, "wb", closefd=False) as whole:  # a write may take less than all
        whole.write(content)
    os.lseek(file, 0, os.SEEK_SET)
    return file


def _command_line(argv: list[bytes]) -> bytes:
    return (b"\0".join(argv) + b"\0")[:_COMPARED_BYTES]
