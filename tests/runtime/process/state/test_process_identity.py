"""A process is not mistaken for another one with its pid."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec import structs

from podstatus.runtime.process.records.models import ProcessIdentity
from podstatus.runtime.process.shim.processes import Process, signal_process
from podstatus.runtime.process.state.process_identity import (
    is_alive,
    open_process,
    read_identity,
    send_signal,
)


@contextmanager
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def identity_of(pid: int) -> ProcessIdentity:
    identity = read_identity(pid)
    assert identity is not None
    return identity


def test_a_running_process_is_alive_and_can_be_ended() -> None:
    with sleeper() as process:
        identity = identity_of(process.pid)
        assert is_alive(identity)
        assert send_signal(identity, signal.SIGTERM)
        assert process.wait(60) == -signal.SIGTERM
        assert not is_alive(identity)
        assert not send_signal(identity, signal.SIGTERM)


@pytest.mark.parametrize("other", [{"start_ticks": 1}, {"boot_id": "another"}])
def test_another_one_with_its_pid_is_left_alone(other: dict[str, object]) -> None:
    with sleeper() as process:
        impostor = structs.replace(identity_of(process.pid), **other)
        assert not is_alive(impostor)
        assert open_process(impostor) is None
        assert not send_signal(impostor, signal.SIGKILL)
        assert process.poll() is None


def test_a_thread_that_has_its_pid_is_no_process() -> None:
    """After a reboot, most small numbers are IDs of threads."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        assert thread.native_id is not None
        earlier = ProcessIdentity(pid=thread.native_id, start_ticks=1, boot_id="another")
        assert open_process(earlier) is None
        assert not send_signal(earlier, signal.SIGKILL)
        signal_process(Process(thread.native_id, 1, 1), signal.SIGKILL)
    finally:
        over.set()
        thread.join()


def test_remains_are_not_alive() -> None:
    with sleeper() as process:
        identity = identity_of(process.pid)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert read_identity(process.pid) is None
        assert not is_alive(identity)


def test_a_name_with_parentheses_does_not_confuse() -> None:
    code = (
        "import ctypes, time; ctypes.CDLL(None).prctl(15, b') R 1 (', 0, 0, 0);"
        "print('named', flush=True); time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        stat = Path(f"/proc/{process.pid}/stat").read_bytes()
        assert identity_of(process.pid).start_ticks == int(stat.rpartition(b")")[2].split()[19])
    finally:
        process.kill()
        process.communicate()
