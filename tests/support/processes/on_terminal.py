"""A command on a terminal: what it writes there, as the terminal gets it."""

import os
import pty
import subprocess
import termios
from collections.abc import Mapping

from tests.support.processes.agent_process import ENVIRONMENT, SECONDS
from tests.support.processes.programs import COMMAND


def on_terminal(*words: str, environment: Mapping[str, str] | None = None) -> tuple[int, bytes]:
    """The exit code of the command and all bytes that its terminal got."""
    ours, theirs = pty.openpty()
    try:
        modes = termios.tcgetattr(theirs)
        modes[1] &= ~termios.OPOST  # so that we see what was written, not what was made of it
        termios.tcsetattr(theirs, termios.TCSANOW, modes)
        process = subprocess.Popen(
            [*COMMAND, *words],
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            env={**ENVIRONMENT, "LANG": "C.UTF-8", **(environment or {})},
        )
        os.close(theirs)
        theirs = -1
        got = b""
        while piece := _read(ours):
            got += piece
        return process.wait(SECONDS), got
    finally:
        os.close(ours)
        if theirs >= 0:
            os.close(theirs)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # nobody has it open any more
        return b""
