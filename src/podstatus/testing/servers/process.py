"""A program that never outlives the process that started it, however that one ends.

Between the two stands a guard: this file, run as a program. It holds the reading end of a pipe
that closes when its starter is gone, also by SIGKILL, and then ends the program. Should the guard
itself be killed, Linux ends the program; other systems do not.
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
"""For a program to end after SIGKILL, or a guard to start: plenty on a loaded machine."""
_TAIL_LINES = 12
"""Of a log, in an error."""
_PR_SET_PDEATHSIG = 1


class GuardedProcess:
    """A program, its output in a file. Raises OSError if it cannot be started."""

    def __init__(self, command: Sequence[str | Path], log: Path) -> None:
        words = [str(word) for word in command]
        self.log = log
        guard = [sys.executable, "-I", "-S", __file__, *words]
        with log.open("ab") as output:
            self._log_start = output.tell()
            # In a session of its own: Ctrl-C is for the starter, who ends it in order.
            self._guard = subprocess.Popen(  # noqa: S603 - ourselves
                guard,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
                start_new_session=True,
            )
        assert self._guard.stdout is not None  # noqa: S101 - a pipe was asked for
        told = self._guard.stdout.readline().strip()
        if not told.isdigit():
            self._guard.communicate(timeout=_TIMEOUT_SECONDS)
            raise OSError(f"cannot start {words[0]}: {told or 'the guard died'}")
        self.pid = int(told)

    @property
    def running(self) -> bool:
        """Whether it has not ended; a paused one runs."""
        return self._guard.poll() is None

    def wait(self, seconds: float) -> bool:
        """Wait that long for it to end; whether it did."""
        try:
            self._guard.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def send_signal(self, number: int) -> None:
        """Send a signal to the program, if it has not ended."""
        if self.running:
            # It may have ended a moment ago; the guard takes another to follow.
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def end(self, number: int = signal.SIGTERM, *, grace: float = _TIMEOUT_SECONDS) -> None:
        """End it with this signal; by force if it takes longer than the grace."""
        self.send_signal(number)
        # One that is paused would hear of it only afterwards.
        self.send_signal(signal.SIGCONT)
        if not self.wait(grace):
            self.send_signal(signal.SIGKILL)
        self._guard.communicate(timeout=_TIMEOUT_SECONDS)

    def log_tail(self) -> str:
        """The last lines that it wrote."""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            lines = log.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-_TAIL_LINES:])


def guard(command: Sequence[str]) -> int:
    """Run a program until it ends, or our input does; its exit code."""
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

    def end_with_the_guard() -> None:
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    try:
        program = subprocess.Popen(  # noqa: S603 - what we were told to
            command,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            stderr=sys.stderr,
            preexec_fn=end_with_the_guard,  # noqa: PLW1509 - there is no other thread yet
        )
    except OSError as error:
        print((error.strerror or str(error)).lower(), flush=True)  # noqa: T201 - to the starter
        return 1
    print(program.pid, flush=True)  # noqa: T201 - to the starter
    threading.Thread(target=_end_with_input, args=(program,), daemon=True).start()
    return program.wait()


def _end_with_input(program: subprocess.Popen[bytes]) -> None:
    sys.stdin.buffer.read()
    program.kill()


if __name__ == "__main__":
    # Without Python's own goodbyes: the thread may be in the middle of reading.
    os._exit(guard(sys.argv[1:]) & 0xFF)
