"""A child process that never outlives its parent, however the parent ends.

Between the two runs a guard: this file as a program. It reads from a pipe that closes when the
parent ends, even by SIGKILL, and then kills the program. If the guard itself is killed, Linux kills
the program (PR_SET_PDEATHSIG); other systems do not.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

_TIMEOUT_SECONDS = 90.0
"""For a program to end after SIGKILL, or a guard to start: generous for a loaded machine."""
_TAIL_LINES = 12
"""Log lines that an error message includes."""
_PR_SET_PDEATHSIG = 1


class GuardedProcess:
    """A running program with its output in a file. Raises OSError if it cannot be started."""

    def __init__(self, command: Sequence[str | Path], log: Path) -> None:
        arguments = [str(word) for word in command]
        self.log = log
        guard = [sys.executable, "-I", "-S", __file__, *arguments]
        with log.open("ab") as output:
            self._log_start = output.tell()
            # In its own session: Ctrl-C is for the parent, which stops the program in order.
            self._guard = subprocess.Popen(  # noqa: S603 - our own module
                guard,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
                start_new_session=True,
            )
        assert self._guard.stdout is not None  # noqa: S101 - stdout is a pipe
        reply = self._guard.stdout.readline().strip()
        if not reply.isdigit():
            self._guard.communicate(timeout=_TIMEOUT_SECONDS)
            raise OSError(f"cannot start {arguments[0]}: {reply or 'the guard died'}")
        self.pid = int(reply)

    @property
    def running(self) -> bool:
        """Whether the program has not exited; a paused program is running."""
        return self._guard.poll() is None

    def wait(self, seconds: float) -> bool:
        """Wait at most `seconds` for the exit; return whether it exited."""
        try:
            self._guard.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def send_signal(self, number: int) -> None:
        """Send a signal to the program, if it runs."""
        if self.running:
            # It may have exited just now; the guard exits a moment later.
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def end(self, number: int = signal.SIGTERM, *, grace: float = _TIMEOUT_SECONDS) -> None:
        """Stop with this signal; with SIGKILL if it takes longer than `grace` seconds."""
        self.send_signal(number)
        # A paused program would handle the signal only after it is resumed.
        self.send_signal(signal.SIGCONT)
        if not self.wait(grace):
            self.send_signal(signal.SIGKILL)
        self._guard.communicate(timeout=_TIMEOUT_SECONDS)

    def log_tail(self) -> str:
        """Return the last lines of the program's output."""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            lines = log.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-_TAIL_LINES:])


def guard(command: Sequence[str]) -> int:
    """Run a program until it exits or stdin closes; return its exit code."""
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

    def die_with_guard() -> None:
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    try:
        program = subprocess.Popen(  # noqa: S603 - the command of the parent
            command,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            stderr=sys.stderr,
            preexec_fn=die_with_guard,  # noqa: PLW1509 - there is no other thread yet
        )
    except OSError as error:
        print((error.strerror or str(error)).lower(), flush=True)  # noqa: T201 - read by the parent
        return 1
    print(program.pid, flush=True)  # noqa: T201 - read by the parent
    threading.Thread(target=_end_with_input, args=(program,), daemon=True).start()
    return program.wait()


def _end_with_input(program: subprocess.Popen[bytes]) -> None:
    sys.stdin.buffer.read()
    program.kill()


if __name__ == "__main__":
    # Skip the interpreter's shutdown: the thread may be blocked in a read.
    os._exit(guard(sys.argv[1:]) & 0xFF)
