"""Whatever ends first, no process of a container is left, and only known exits are recorded."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from podstatus.runtime.process.shim.processes import descendants
from podstatus.runtime.process.state.process_identity import read_identity
from tests.runtime.process.shim.isolated import isolated
from tests.runtime.process.shim_on_trial import (
    DEADLINE,
    PROGRAM,
    SANDBOX,
    Container,
    ShimOnTrial,
    processes_of,
    wait_for,
    wait_for_end,
)
from tests.support.processes.process_runtime import AS_NOBODY, NOBODY

DAEMON = """
import os, signal, sys, time
for _ in range(2):
    if os.fork():
        break
    os.setsid()
else:
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    print("daemon", os.getppid(), flush=True)
    time.sleep(1000)
if sys.argv[1] == "stay" and os.getsid(0) == os.getpid():
    time.sleep(1000)
os.wait()
"""
"""A double-forked daemon that ignores signals, and a command that ends or stays."""


LOST = {"exit_code": 137, "reason": "ContainerStatusUnknown", "started_at": 0}


def launch_daemon(shim: ShimOnTrial, **changes: object) -> Container:
    script = f"{sys.executable} -I -S -c '{DAEMON}' go & read line < /dev/null; sleep 1000"
    return shim.launch("/bin/bash", "-c", script, **changes)


@pytest.mark.parametrize("sandboxed", [False, True])
def test_daemons_end_with_the_command(shim: ShimOnTrial, sandboxed: bool) -> None:
    container = launch_daemon(shim, **isolated() if sandboxed else {})
    container.wait_for_text(b"daemon")
    started = container.started()
    family = descendants(started.monitor.pid)
    assert len(family) >= 3
    os.kill(started.process.pid, signal.SIGKILL)
    assert container.wait_for_exit().exit_code == 137
    assert not any(Path(f"/proc/{process.pid}").exists() for process in family)
    wait_for(lambda: descendants(shim.pid) == [], named="nothing but the shim")


def test_what_forks_all_the_time_ends_too(shim: ShimOnTrial) -> None:
    bomb = """
import os, time
deadline = time.monotonic() + 60
os.fork()
while time.monotonic() < deadline:
    if os.fork():
        os._exit(0)
"""
    script = f"{sys.executable} -I -S -c '{bomb}' & {sys.executable} -I -S -c '{bomb}' & sleep 0.2"
    container = shim.launch("/bin/sh", "-c", script)
    assert container.wait_for_exit().exit_code == 0
    wait_for(lambda: descendants(shim.pid) == [], named="nothing but the shim")


def test_orphans_are_collected_while_the_command_runs(shim: ShimOnTrial) -> None:
    script = "for i in 1 2 3 4 5 6 7 8; do (true &); done; echo done; sleep 1000"
    container = shim.launch("/bin/sh", "-c", script)
    container.wait_for_text(b"done")
    monitor = container.started().monitor.pid
    wait_for(lambda: len(descendants(monitor)) == 2, named="nothing but the shell and its sleep")


def test_no_zombies_are_left(shim: ShimOnTrial) -> None:
    containers = [shim.launch("/bin/true") for _ in range(10)]
    for container in containers:
        container.wait_for_exit()
    wait_for(lambda: descendants(shim.pid) == [], named="no process but the shim")


def test_a_pipe_that_was_handed_outside_does_not_delay_the_end_for_long(shim: ShimOnTrial) -> None:
    container = shim.launch("/bin/sh", "-c", "echo first; read line < /dev/zero; sleep 1000")
    pid = container.started().process.pid
    container.wait_for_text(b"first")
    with Path(f"/proc/{pid}/fd/1").open("wb", buffering=0) as outside:
        outside.write(b"from outside\n")
        os.kill(pid, signal.SIGKILL)
        record = container.ended()
        assert time.time_ns() - record.finished_at < DEADLINE * 10**9
    assert container.wrote() == b"first\nfrom outside\n"


def test_the_time_of_the_end_is_when_the_command_ended(shim: ShimOnTrial) -> None:
    container = shim.launch("/bin/sh", "-c", "echo x; sleep 1000")
    pid = container.started().process.pid
    container.wait_for_text(b"x")
    with Path(f"/proc/{pid}/fd/1").open("wb", buffering=0):  # keeps the log open for a second
        killed = time.time_ns()
        os.kill(pid, signal.SIGKILL)
        record = container.ended()
    written = container.place.exit.stat().st_mtime_ns
    assert killed < record.finished_at < written - 9 * 10**8


@pytest.mark.parametrize("sandboxed", [False, True])
def test_sigterm_to_the_monitor_ends_the_container(shim: ShimOnTrial, sandboxed: bool) -> None:
    container = launch_daemon(shim, **isolated() if sandboxed else {})
    container.wait_for_text(b"daemon")
    os.kill(container.started().monitor.pid, signal.SIGTERM)
    record = container.wait_for_exit()
    assert (record.exit_code, record.reason) == (137, "Error")
    wait_for(lambda: descendants(shim.pid) == [], named="nothing but the shim")


def test_sigterm_to_the_shim_ends_all_and_records_it(shim: ShimOnTrial) -> None:
    containers = [launch_daemon(shim), launch_daemon(shim, **isolated())]
    for container in containers:
        container.wait_for_text(b"daemon")
    family = descendants(shim.pid)
    assert shim.end() == 0
    assert [container.ended().exit_code for container in containers] == [137, 137]
    assert not any(Path(f"/proc/{process.pid}").exists() for process in family)


@pytest.mark.parametrize("sandboxed", [False, True])
def test_a_killed_shim_leaves_nothing_and_no_record(shim: ShimOnTrial, sandboxed: bool) -> None:
    container = launch_daemon(shim, **isolated() if sandboxed else {})
    container.wait_for_text(b"daemon")
    family = descendants(shim.pid)
    assert len(family) >= 4
    os.killpg(shim.pid, signal.SIGKILL)
    wait_for(lambda: not any(read_identity(each.pid) for each in family), named="the end of all")
    assert not container.place.exit.exists()


@pytest.mark.parametrize("sandboxed", [False, True])
def test_a_killed_monitor_leaves_nothing_and_no_record(shim: ShimOnTrial, sandboxed: bool) -> None:
    other = shim.launch("/bin/sleep", "1000")
    other.started()
    container = launch_daemon(shim, **isolated() if sandboxed else {})
    container.wait_for_text(b"daemon")
    monitor = container.started().monitor
    family = descendants(monitor.pid)
    os.kill(monitor.pid, signal.SIGKILL)
    wait_for_end(monitor)
    wait_for(lambda: not any(read_identity(each.pid) for each in family), named="the end of all")
    assert not container.place.exit.exists()
    # The other containers are not affected.
    wait_for(lambda: len(descendants(shim.pid)) == 2, named="the other one alone")
    assert shim.launch("/bin/true").ended().exit_code == 0
    assert "killing its container" in shim.complaints()[-1]
    assert not other.place.exit.exists()


@pytest.mark.parametrize("sandboxed", [False, True])
def test_a_command_does_not_outlive_shim_and_monitor(shim: ShimOnTrial, sandboxed: bool) -> None:
    container = shim.launch("/bin/sleep", "1000", **isolated() if sandboxed else {})
    container.started()
    family = descendants(shim.pid)
    shim.send(signal.SIGSTOP)  # so that it cannot react
    os.kill(container.started().monitor.pid, signal.SIGKILL)
    shim.end(signal.SIGKILL)
    wait_for(lambda: not any(read_identity(each.pid) for each in family), named="the end of all")
    assert not container.place.exit.exists()


def test_an_idle_shim_does_nothing(shim: ShimOnTrial) -> None:
    container = shim.launch("/bin/sleep", "1000", stdin=True)
    idle = [shim.pid, container.started().monitor.pid]
    wait_for(lambda: all(_rests(pid) for pid in idle), named="rest")


def _rests(pid: int) -> bool:
    """Return whether the process is idle for a while."""
    before = _switches(pid)
    time.sleep(0.5)  # a test for what does not happen has nothing to wait for
    return _switches(pid) == before and "S (sleeping)" in _status(pid)


def _switches(pid: int) -> list[str]:
    return [line for line in _status(pid).splitlines() if "ctxt_switches" in line]


def _status(pid: int) -> str:
    return Path(f"/proc/{pid}/status").read_text()


def test_one_shim_at_a_time_and_one_for_a_sandbox(shim: ShimOnTrial) -> None:
    again = subprocess.Popen(
        [sys.executable, "-I", "-S", str(PROGRAM), str(shim.folder.path), shim.sandbox],
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    container = shim.launch("/bin/true")
    assert container.ended().exit_code == 0
    assert again.poll() is None
    assert shim.end() == 0
    _, stderr = again.communicate(timeout=DEADLINE)
    assert again.returncode == 1
    assert b"already had a shim" in stderr


def test_another_sandbox_of_the_pod_gets_a_shim(shim: ShimOnTrial, tmp_path: Path) -> None:
    assert shim.end() == 0
    other = ShimOnTrial(tmp_path, sandbox="sandbox-2")
    other.start()
    container = other.launch("/bin/echo", "again")
    assert container.ended().exit_code == 0
    assert other.end() == 0


def test_the_shim_leads_a_session_with_nothing_open(shim: ShimOnTrial) -> None:
    assert os.getsid(shim.pid) == shim.pid
    container = shim.launch("/bin/sleep", "1000")
    monitor = container.started().monitor.pid
    assert {path.name for path in Path(f"/proc/{shim.pid}/fd").iterdir()} == {"0", "1", "2", "3"}
    assert Path(f"/proc/{shim.pid}/cwd").readlink() == Path("/")
    wait_for(lambda: _rests(monitor), named="rest")
    files = Path(f"/proc/{monitor}/fd").iterdir()
    # One may be closed between the two calls.
    opened = {str(path.resolve()) for path in files}
    assert str(shim.folder.path) not in opened


def test_records_and_logs_are_for_the_owner_only(shim: ShimOnTrial) -> None:
    container = shim.launch("/bin/echo", "x", stdin=True)
    container.wait_for_exit()
    place = container.place
    for path in (shim.folder.shim, place.started, place.exit, place.log, place.stdin):
        assert path.stat().st_mode & 0o777 == 0o600, path
    assert not list(place.path.glob("*.new"))


def test_a_folder_that_is_taken_away_does_not_hold_up_the_monitor(shim: ShimOnTrial) -> None:
    container = shim.launch("/bin/sleep", "1000")
    started = container.started()
    shutil.rmtree(container.place.path)
    os.kill(started.process.pid, signal.SIGKILL)
    wait_for_end(started.monitor)
    assert "exit.json" in shim.complaints()[-1]


def test_a_shim_whose_folder_is_gone_ends_all(shim: ShimOnTrial) -> None:
    container = shim.launch("/bin/sh", "-c", "(sleep 1000 &) ; exec sleep 1000")
    started = container.started()
    shutil.rmtree(container.place.path.parents[1])
    os.kill(shim.pid, signal.SIGHUP)  # or a minute later by itself
    wait_for_end(started.monitor)
    wait_for(lambda: read_identity(started.process.pid) is None, named="the end of the command")
    wait_for(lambda: read_identity(shim.pid) is None, named="the end of the shim")


def test_a_full_disk_delays_records_and_does_not_lose_them(shim: ShimOnTrial) -> None:
    # No file can be written: the error is handled like that of a full disk.
    unlimited = resource.prlimit(shim.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(shim.pid, resource.RLIMIT_FSIZE, (0, unlimited[1]))
    container = shim.launch("/bin/sh", "-c", "echo x; exec sleep 1000")
    wait_for(lambda: len(descendants(shim.pid)) == 2, named="the command")
    wait_for((container.place.path / "started.json.new").exists, named="a first try")
    monitor, command = descendants(shim.pid)
    assert not container.place.started.exists()
    resource.prlimit(monitor.pid, resource.RLIMIT_FSIZE, unlimited)
    assert container.started().process.pid == command.pid
    resource.prlimit(monitor.pid, resource.RLIMIT_FSIZE, (0, unlimited[1]))
    os.kill(command.pid, signal.SIGKILL)
    wait_for(lambda: read_identity(command.pid) is None, named="the end of the command")
    assert not container.place.exit.exists()
    resource.prlimit(monitor.pid, resource.RLIMIT_FSIZE, unlimited)
    record = container.ended()
    assert (record.exit_code, record.started_at) == (137, container.started().started_at)


def test_an_existing_exit_record_stays(shim: ShimOnTrial) -> None:
    container = shim.launch("/bin/sh", "-c", "read line < /dev/null; exec sleep 1000")
    started = container.started()
    # As an agent does that considered it lost, and reported that.
    container.place.exit.write_text(json.dumps({**LOST, "finished_at": 5}))
    os.kill(started.process.pid, signal.SIGTERM)
    wait_for_end(started.monitor)
    assert (container.ended().exit_code, container.ended().finished_at) == (137, 5)
    assert not list(container.place.path.glob("*.new"))


ORPHANING = """
import importlib, os, signal, sys, time

sys.path.append({home!r})
main = importlib.import_module("shim.main").main
SHIM = os.getpid()


def orphan(event, arguments):
    if event == "open" and str(arguments[0]).endswith("/started.json.new"):
        if os.getppid() == SHIM:
            os.kill(SHIM, signal.SIGKILL)
        while os.getppid() == SHIM:
            time.sleep(0.001)


sys.addaudithook(orphan)
sys.exit(main(sys.argv[1:]))
"""


def test_a_monitor_that_begins_after_its_shim_has_ended_starts_nothing(tmp_path: Path) -> None:
    program, ran = tmp_path / "shim_program.py", tmp_path / "ran"
    program.write_text(ORPHANING.format(home=str(PROGRAM.parent)))
    shim = ShimOnTrial(tmp_path)
    shim.start(program)
    container = shim.launch("/bin/mkdir", str(ran))
    assert shim.process is not None
    assert shim.process.wait(DEADLINE) == -signal.SIGKILL
    wait_for(lambda: not processes_of(tmp_path), named="the end of the monitor")
    assert not ran.exists()
    assert not container.place.started.exists()
    assert not container.place.exit.exists()


def test_the_end_of_a_monitor_that_could_record_nothing_is_recorded_by_the_shim(
    shim: ShimOnTrial,
) -> None:
    unlimited = resource.prlimit(shim.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(shim.pid, resource.RLIMIT_FSIZE, (0, unlimited[1]))
    container = shim.launch("/bin/sleep", "1000")
    wait_for(lambda: len(descendants(shim.pid)) == 2, named="the command")
    monitor, command = descendants(shim.pid)
    os.kill(monitor.pid, signal.SIGKILL)
    wait_for(lambda: read_identity(command.pid) is None, named="the end of the command")
    wait_for(lambda: not descendants(shim.pid) and _rests(shim.pid), named="a first try")
    assert not container.place.exit.exists()
    resource.prlimit(shim.pid, resource.RLIMIT_FSIZE, unlimited)
    shim.send(signal.SIGHUP)  # as a waiting agent does
    record = container.ended()
    assert (record.exit_code, record.reason) == (137, "ContainerStatusUnknown")
    assert record.started_at == 0
    assert shim.launch("/bin/true").ended().exit_code == 0


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become an ordinary user")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv: apt install util-linux")
@pytest.mark.parametrize("sandboxed", [False, True])
def test_all_of_it_works_for_an_ordinary_user(sandboxed: bool) -> None:
    python = "/usr/bin/python3"
    if not Path(python).exists():
        pytest.skip(f"needs a Python that anybody may run: {python}")
    # Not pytest's own folder, which is private.
    with tempfile.TemporaryDirectory() as root:
        _run_as_nobody(Path(root), python, isolated() if sandboxed else {})


def _run_as_nobody(root: Path, python: str, changes: dict[str, object]) -> None:
    shutil.copytree(PROGRAM.parent, root / "program")
    shim = ShimOnTrial(root, starter=AS_NOBODY)
    containers = [
        shim.write_launch("/bin/sh", "-c", "id -u; exit 5", **changes),
        shim.write_launch("/no/such", **changes),
        shim.write_launch("/bin/sleep", "1000", **changes),
    ]
    for path in [root, *root.rglob("*")]:
        shutil.chown(path, NOBODY, NOBODY)
    shim.start(root / "program" / "shim_program.py", python=python)
    assert containers[0].ended().exit_code == 5
    assert containers[0].wrote() == b"65534\n"
    assert containers[1].ended().message == 'exec: "/no/such": no such file or directory'
    assert b"sleep" in Path(f"/proc/{containers[2].started().process.pid}/cmdline").read_bytes()
    assert shim.end() == 0
    assert containers[2].ended().exit_code == 137
    assert shim.complaints() == []


@pytest.mark.parametrize(
    ("sandbox", "stopped"), [("another", False), (SANDBOX, True)], ids=["given up", "stopped"]
)
def test_a_shim_that_comes_too_late_ends(tmp_path: Path, sandbox: str, stopped: bool) -> None:
    late = ShimOnTrial(tmp_path)
    record = {"sandbox_id": sandbox, "stopped": stopped}
    late.folder.record.write_text(json.dumps(record))
    command = [sys.executable, "-I", "-S", str(PROGRAM), str(late.folder.path), SANDBOX]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert done.returncode == 1
    assert "was given up before its shim started" in done.stderr
    assert not late.folder.shim.exists()


def test_nothing_is_started_while_something_is_left_of_a_killed_monitor_s_container(
    shim: ShimOnTrial,
) -> None:
    container = launch_daemon(shim)
    container.wait_for_text(b"daemon")
    monitor = container.started().monitor.pid
    family = descendants(monitor)
    # Both wait for the shim: the end of the monitor, and the agent's request.
    shim.send(signal.SIGSTOP)
    os.kill(monitor, signal.SIGKILL)
    wait_for(lambda: read_identity(monitor) is None, named="the end of the monitor")
    pids = " ".join(str(process.pid) for process in family)
    script = f"for pid in {pids}; do kill -0 $pid 2> /dev/null && echo $pid; done; echo looked"
    after = shim.launch("/bin/sh", "-c", script)
    shim.send(signal.SIGCONT)
    assert after.ended().exit_code == 0
    assert after.wrote() == b"looked\n"
