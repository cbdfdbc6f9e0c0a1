"""A program never outlives the process that started it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from podstatus.testing.servers.guarded_process import GuardedProcess
from tests.testing.servers.process_state import SECONDS, ended, linux_only

SLEEPER = [sys.executable, "-c", "import time; print('awake', flush=True); time.sleep(600)"]
STARTER = """
import sys
from pathlib import Path
from podstatus.testing.servers.guarded_process import GuardedProcess
process = GuardedProcess(sys.argv[2:], Path(sys.argv[1]))
print(process.pid, flush=True)
sys.stdin.read()
"""


def test_what_it_says_is_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("from before\n")
    process = GuardedProcess([sys.executable, "-c", "print('out'); 1 / 0"], log)
    assert process.wait(SECONDS)
    process.end()
    assert process.log_tail().startswith("out\n")
    assert process.log_tail().endswith("ZeroDivisionError: division by zero")
    assert log.read_text().startswith("from before\n")


def test_only_the_last_lines_are_shown(tmp_path: Path) -> None:
    process = GuardedProcess(
        [sys.executable, "-c", "print(*range(100), sep='\\n')"], tmp_path / "log"
    )
    assert process.wait(SECONDS)
    process.end()
    assert process.log_tail().split() == [str(number) for number in range(88, 100)]


def test_a_program_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="cannot start /nowhere/etcd: no such file or directory"):
        GuardedProcess(["/nowhere/etcd"], tmp_path / "log")


@linux_only
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_it_is_ended(tmp_path: Path, number: int) -> None:
    process = GuardedProcess(SLEEPER, tmp_path / "log")
    process.end(number)
    assert not process.running
    assert ended(process.pid)


def test_one_that_is_paused_is_ended_too(tmp_path: Path) -> None:
    process = GuardedProcess(SLEEPER, tmp_path / "log")
    process.send_signal(signal.SIGSTOP)
    process.end()
    assert not process.running


def test_one_that_does_not_listen_is_ended_by_force(tmp_path: Path) -> None:
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + SLEEPER[-1]
    log = tmp_path / "log"
    process = GuardedProcess([sys.executable, "-c", deaf], log)
    while not log.read_bytes():
        assert not process.wait(0.01)
    process.end(grace=0.1)
    assert not process.running


@linux_only
@pytest.mark.parametrize("paused", [False, True], ids=["running", "paused"])
def test_it_ends_when_its_starter_is_killed(tmp_path: Path, paused: bool) -> None:
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(tmp_path / "log"), *SLEEPER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())
    if paused:
        os.kill(pid, signal.SIGSTOP)
    starter.kill()
    starter.communicate()
    assert ended(pid)


@linux_only
def test_it_ends_when_its_guard_is_killed(tmp_path: Path) -> None:
    process = GuardedProcess(SLEEPER, tmp_path / "log")
    parent = psutil.Process(process.pid).parent()
    assert parent is not None
    assert parent.pid != os.getpid()
    parent.kill()
    assert ended(process.pid)
    process.end()


def test_a_signal_that_comes_too_late_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = GuardedProcess([sys.executable, "-c", ""], tmp_path / "log")
    assert process.wait(SECONDS)
    # The guard exits a moment after its program.
    monkeypatch.setattr(GuardedProcess, "running", True)
    process.end()
