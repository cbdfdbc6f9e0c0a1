"""A command inside of bubblewrap: how it is called, and what it tells of the command.

It tells on a file of its own, a line of JSON each: `child-pid`, as seen from outside, and
`exit-code`, the latter only if the command could be executed. What it cannot do it says on stderr.
"""

import base64
import json
import os
from pathlib import Path

from .bubblewrap_monitor import hide_monitor
from .host_paths import open_all
from .processes import Process, find
from .records import Launch
from .start import CannotStartError, Program, encode
from .stderr_log import complain

_PREFIX = "bwrap: "

_COMPARED = 4096
"""Bytes of a command line that tell it from bubblewrap's: enough for its arguments of ours."""


class Sandbox:
    """Bubblewrap, to be started, and then what is known of the command in it."""

    def __init__(self, launch: Launch) -> None:
        arguments = [encode(argument) for argument in launch.bubblewrap or ()]
        command = [encode(argument) for argument in launch.argv]
        if not arguments or not command:
            raise CannotStartError("no command")
        host_paths = open_all(launch.host_paths)
        for wanted, opened in zip(launch.host_paths, host_paths, strict=True):
            arguments[wanted["argument"]] = b"%d" % opened
        self.status, writable = os.pipe()
        os.set_blocking(self.status, False)
        words = b"".join(argument + b"\0" for argument in arguments[1:])
        handed = {b"--args": _in_memory(words), b"--json-status-fd": writable}
        if launch.seccomp:
            handed[b"--seccomp"] = _in_memory(base64.b64decode(launch.seccomp))
        options = [word for name, file in handed.items() for word in (name, b"%d" % file)]
        argv = [arguments[0], *options, b"--", *command]
        # An ordinary user's sandbox has a user namespace of its own, and no rights outside of it.
        traced = os.geteuid() == 0
        self.program = Program(argv, {}, "/", (*handed.values(), *host_paths), traced)
        self._own_line = _command_line_of(argv)
        self._unread = b""
        self.command: Process | None = None
        """The command, or what will become it."""
        self.exit_code: int | None = None

    def started(self, pid: int) -> None:
        """Bubblewrap is executed: it has its own of our files now, and is to be hidden."""
        if self.program.traced and not hide_monitor(pid):
            complain("bubblewrap's monitor stays dumpable: it could not be traced")
        for file in self.program.inherited:
            os.close(file)

    def look(self) -> bool:
        """Take in what it tells; whether the command was executed."""
        self._read()
        if self.exit_code is not None:
            return True
        if self.command is None:
            return False
        try:
            with Path(f"/proc/{self.command.pid}/cmdline").open("rb") as file:
                line = file.read(_COMPARED)
        except OSError:
            return False
        now = find(self.command.pid)
        if now is None or now.start_ticks != self.command.start_ticks:
            return False
        # Empty: in the middle of being executed, or ended.
        return line not in (b"", self._own_line)

    def _read(self) -> None:
        try:
            while piece := os.read(self.status, 4096):
                self._unread += piece
        except BlockingIOError:
            pass
        *lines, self._unread = self._unread.split(b"\n")
        for line in filter(None, lines):
            told = json.loads(line)
            if "child-pid" in told:
                pid = told["child-pid"]
                # One that is gone already cannot be mistaken for another: nothing starts at 0.
                self.command = find(pid) or Process(pid, 0, 0)
            if "exit-code" in told:
                self.exit_code = told["exit-code"]


def complaint(said: bytes) -> str:
    """What bubblewrap could not do, in the words of those who start containers otherwise."""
    lines = said.decode(errors="replace").replace("\r\n", "\n").splitlines()
    own = [line for line in lines if line.startswith(_PREFIX)]
    if not own:
        return "bubblewrap ended before the command was executed"
    words = own[-1].removeprefix(_PREFIX)
    for theirs, ours in (("execvp ", 'exec: "'), ("Can't chdir to ", 'chdir "')):
        what, colon, why = words.removeprefix(theirs).rpartition(": ")
        if words.startswith(theirs) and colon:
            return f'{ours}{what}": {why.lower()}'
    return f"bubblewrap: {words}"


def _in_memory(content: bytes) -> int:
    file = os.memfd_create("bubblewrap")
    with open(file, "wb", closefd=False) as whole:  # a write may take less than all
        whole.write(content)
    os.lseek(file, 0, os.SEEK_SET)
    return file


def _command_line_of(argv: list[bytes]) -> bytes:
    return (b"\0".join(argv) + b"\0")[:_COMPARED]
