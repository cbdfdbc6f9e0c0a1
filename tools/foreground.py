"""Run a command as a foreground job of its own: foreground.py COMMAND...

For recipes of make. On Ctrl-C the terminal signals the whole job, and make then ends with an error
even if the command ends well. As a job of its own, as in a shell with job control, only the command
gets Ctrl-C, and make its exit code. Ctrl-Z, fg and bg stop and continue both.
"""

import os
import signal
import sys
from contextlib import suppress

_TERMINAL = 0


def main(command: list[str]) -> int:
    """Run the command and return its exit code.

    In the background or without a terminal, the command replaces this process.
    """
    if not _is_foreground(os.getpgrp()):
        os.execvp(command[0], command)  # noqa: S606 - what the recipe has
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # of taking the terminal back
    child = os.fork()
    if child == 0:
        _give_terminal(os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execvp(command[0], command)  # noqa: S606
    _give_terminal(child)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _: os.kill(child, received))
    return _wait(child)


def _is_foreground(group: int) -> bool:
    try:
        return os.tcgetpgrp(_TERMINAL) == group
    except OSError:  # standard input is no terminal
        return False


def _give_terminal(child: int) -> None:
    """Make the child a job in the foreground; both processes do, whichever runs first."""
    with suppress(PermissionError):  # it runs the command already, and so has done it
        os.setpgid(child, child)
    os.tcsetpgrp(_TERMINAL, child)


def _wait(child: int) -> int:
    while True:
        _, status = os.waitpid(child, os.WUNTRACED)
        with suppress(OSError):  # the terminal is closed
            os.tcsetpgrp(_TERMINAL, os.getpgrp())
        if not os.WIFSTOPPED(status):
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        os.killpg(0, signal.SIGTSTP)
        # Continued by the shell, in the foreground or in the background.
        if _is_foreground(os.getpgrp()):
            os.tcsetpgrp(_TERMINAL, child)
        os.killpg(child, signal.SIGCONT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
