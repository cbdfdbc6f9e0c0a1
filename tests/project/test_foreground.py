"""Ctrl-C and Ctrl-Z of what make runs."""

import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SECONDS = 60
FOREGROUND = Path(__file__).parents[2] / "tools" / "foreground.py"
NODE = """
import signal
signals = {signal.SIGINT, signal.SIGCONT}
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
print("serving", flush=True)
while signal.sigwait(signals) == signal.SIGCONT:
    print("continued", flush=True)
print("stopped well")
"""


class Shell:
    """An interactive shell on a terminal, in a folder with a Makefile."""

    def __init__(self, folder: Path) -> None:
        environment = {"PATH": os.environ["PATH"], "PS1": "$ ", "TERM": "dumb"}
        self._process, self._terminal = pty.fork()
        if not self._process:
            os.chdir(folder)
            words = ["bash", "--norc", "--noediting", "-i"]
            os.execvpe(words[0], words, environment)  # noqa: S606
        self.output = ""

    def type(self, text: str) -> None:
        self.output = ""
        os.write(self._terminal, text.encode())

    def read_until(self, text: str) -> None:
        while text not in self.output:
            assert select.select([self._terminal], [], [], SECONDS)[0], self.output
            self.output += os.read(self._terminal, 4096).decode()

    def close(self) -> None:
        os.kill(self._process, signal.SIGKILL)
        os.close(self._terminal)
        os.waitpid(self._process, 0)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    (tmp_path / "node.py").write_text(NODE)
    recipe = f"\t@{sys.executable} {FOREGROUND} {sys.executable} node.py\n"
    (tmp_path / "Makefile").write_text(f"node:\n{recipe}")
    shell = Shell(tmp_path)
    yield shell
    shell.close()


def test_make_ends_well_after_ctrl_c(shell: Shell) -> None:
    shell.type("make node; echo code $?\n")
    shell.read_until("serving")
    shell.type("\x03")
    shell.read_until("code 0")
    assert "stopped well" in shell.output
    assert "Interrupt" not in shell.output


def test_ctrl_z_stops_both_and_fg_continues_both(shell: Shell) -> None:
    shell.type("make node; echo code $?\n")
    shell.read_until("serving")
    shell.type("\x1a")
    shell.read_until("Stopped")
    shell.type("fg\n")
    shell.read_until("continued")
    shell.type("\x03")
    shell.read_until("stopped well")
    shell.type("jobs; echo code $?\n")
    shell.read_until("code 0")
    assert "Stopped" not in shell.output


def test_a_background_job_and_one_without_a_terminal_run_as_before(shell: Shell) -> None:
    shell.type("make node &\n")
    shell.read_until("serving")
    shell.type("kill -INT %1; wait; echo code $?\n")
    shell.read_until("code 0")
    words = [sys.executable, str(FOREGROUND), sys.executable, "-c", "raise SystemExit(3)"]
    assert subprocess.run(words, stdin=subprocess.DEVNULL, check=False).returncode == 3
