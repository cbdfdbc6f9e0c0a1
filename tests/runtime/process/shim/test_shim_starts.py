"""The shim starts commands exactly as requested, or reports why it cannot."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import msgspec
import pytest

from podstatus.runtime.process.records.models import LaunchRecord
from podstatus.runtime.process.shim import records as shim_records
from podstatus.runtime.process.shim.processes import descendants
from podstatus.runtime.process.state.process_identity import is_alive
from tests.runtime.process.shim.isolated import SETSID, isolated
from tests.runtime.process.shim_on_trial import ShimOnTrial, wait_for

TELL = "import json, os, sys; print(json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]))"
ODD = ("", " ", "'\"`", "a\nb", "$(reboot)", "${HOME}", "日本 ß 💾", "--", "\\", "*", "\x1b[31m")


def test_a_launch_has_the_fields_the_agent_writes() -> None:
    theirs = {field.name: field for field in msgspec.structs.fields(LaunchRecord)}
    for name in shim_records.LaunchSpec._fields:
        default = shim_records.LaunchSpec._field_defaults.get(name, msgspec.NODEFAULT)
        make = theirs[name].default_factory
        expected = theirs[name].default if make is msgspec.NODEFAULT else make()
        assert default == (list(expected) if isinstance(expected, tuple) else expected), name


def test_arguments_and_environment_arrive_unchanged(shim: ShimOnTrial, tmp_path: Path) -> None:
    env = {f"ODD_{number}": text for number, text in enumerate(ODD)}
    container = shim.launch(sys.executable, "-c", TELL, *ODD, env=env, cwd=str(tmp_path))
    assert container.ended().exit_code == 0
    argv, environ, cwd = json.loads(container.wrote())
    environ.pop("LC_CTYPE", None)  # set by Python itself
    assert (argv, environ, cwd) == (list(ODD), env, str(tmp_path))


def test_arguments_and_environment_arrive_unchanged_in_a_sandbox(shim: ShimOnTrial) -> None:
    env = {f"ODD_{number}": text for number, text in enumerate(ODD)}
    settings = [word for name, text in env.items() for word in ("--setenv", name, text)]
    container = shim.launch(sys.executable, "-c", TELL, *ODD, **isolated(*settings))
    assert container.ended().exit_code == 0
    argv, environ, _ = json.loads(container.wrote())
    environ.pop("LC_CTYPE", None)
    environ.pop("PWD", None)  # set by bubblewrap itself
    assert (argv, environ) == (list(ODD), env)


def test_the_environment_of_a_sandbox_is_in_no_list_of_processes(shim: ShimOnTrial) -> None:
    words = isolated("--setenv", "PASSWORD", "hush-hush")
    container = shim.launch("/bin/sleep", "1000", **words)
    command = container.started().process.pid
    monitor = int(Path(f"/proc/{command}/stat").read_text().rpartition(")")[2].split()[1])
    assert b"--args" in Path(f"/proc/{monitor}/cmdline").read_bytes()
    assert b"hush-hush" not in Path(f"/proc/{monitor}/cmdline").read_bytes()


def test_arguments_for_a_sandbox_may_be_more_than_a_pipe_holds(shim: ShimOnTrial) -> None:
    words = isolated(*(word for n in range(200) for word in ("--setenv", f"V{n}", "x" * 2000)))
    container = shim.launch("/bin/sh", "-c", 'printf %s "$V199"', **words)
    assert container.ended().exit_code == 0
    assert container.wrote() == b"x" * 2000


EXITS = [
    ("exit 0", 0, "Completed"),
    ("exit 3", 3, "Error"),
    ("exit 255", 255, "Error"),
]
KILLS = [("kill -9 $$", 137), ("kill -15 $$", 143), ("kill -ABRT $$", 134)]


@pytest.mark.parametrize(("script", "code", "reason"), EXITS)
@pytest.mark.parametrize("sandboxed", [False, True])
def test_the_end_is_recorded(
    shim: ShimOnTrial, script: str, code: int, reason: str, sandboxed: bool
) -> None:
    before = time.time_ns()
    container = shim.launch("/bin/sh", "-c", script, **isolated() if sandboxed else {})
    record = container.ended()
    assert (record.exit_code, record.reason, record.message) == (code, reason, "")
    assert before < record.started_at <= record.finished_at < time.time_ns()
    assert container.started().started_at == record.started_at


@pytest.mark.parametrize(("script", "code"), KILLS)
def test_a_signal_is_an_exit_code(shim: ShimOnTrial, script: str, code: int) -> None:
    record = shim.launch("/bin/sh", "-c", script).ended()
    assert (record.exit_code, record.reason) == (code, "Error")


@pytest.mark.parametrize("sandboxed", [False, True])
def test_the_recorded_process_is_the_command(shim: ShimOnTrial, sandboxed: bool) -> None:
    container = shim.launch("/bin/sleep", "1000", **isolated() if sandboxed else {})
    started = container.started()
    assert Path(f"/proc/{started.process.pid}/cmdline").read_bytes() == b"/bin/sleep\x001000\x00"
    assert is_alive(started.process)
    assert is_alive(started.monitor)
    os.kill(started.process.pid, signal.SIGKILL)
    assert container.ended().exit_code == 137


def test_a_sandbox_that_is_not_ready_is_no_start(shim: ShimOnTrial) -> None:
    # It waits for its standard input, which stays empty before the command runs.
    container = shim.launch("/bin/true", stdin=True, **isolated("--block-fd", "0"))
    wait_for(lambda: len(descendants(shim.pid)) >= 3, named="monitor, bubblewrap and its child")
    assert not container.place.started.exists()
    assert shim.end() == 0
    record = container.ended()
    assert (record.reason, record.started_at) == ("StartError", 0)
    assert record.message == "bubblewrap ended before the command was executed"
    assert not container.place.started.exists()


def _program(tmp_path: Path, text: str, mode: int) -> str:
    path = tmp_path / "program"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize(
    ("text", "mode", "why", "sandboxed"),
    [
        ("#!/bin/sh\n", 0o600, "permission denied", False),
        ("#!/bin/sh\n", 0o600, "permission denied", True),
        ("#!/no/such/interpreter\n", 0o700, "no such file or directory", False),
        ("#!/no/such/interpreter\n", 0o700, "no such file or directory", True),
        # Bubblewrap's execvp runs such a file with a shell.
        ("not a program", 0o700, "exec format error", False),
    ],
)
def test_a_program_that_cannot_be_executed(
    shim: ShimOnTrial, tmp_path: Path, text: str, mode: int, why: str, sandboxed: bool
) -> None:
    program = _program(tmp_path, text, mode)
    record = shim.launch(program, **isolated() if sandboxed else {}).ended()
    assert (record.exit_code, record.reason, record.started_at) == (128, "StartError", 0)
    assert record.message == f'exec: "{program}": {why}'


@pytest.mark.parametrize(
    ("argv", "changes", "message"),
    [
        (("/no/such/command",), {}, 'exec: "/no/such/command": no such file or directory'),
        (("no-such",), {}, 'exec: "no-such": executable file not found in $PATH'),
        (("true",), {"env": {}}, 'exec: "true": executable file not found in $PATH'),
        (("",), {}, 'exec: "": executable file not found in $PATH'),
        ((), {}, "no command"),
        (("/bin/true",), {"cwd": "/x"}, 'chdir "/x": no such file or directory'),
        (("/bin/true",), {"cwd": "/etc/passwd"}, 'chdir "/etc/passwd": not a directory'),
        (
            ("/bin/true",),
            {"cgroups": ("/no/cgroup.procs",)},
            'cgroup "/no/cgroup.procs": no such file or directory',
        ),
        (("/bin/true", "a\0b"), {}, "'a\\x00b' cannot be passed to a program: it contains a NUL"),
    ],
)
def test_what_cannot_be_started_says_why(
    shim: ShimOnTrial, argv: tuple[str, ...], changes: dict[str, object], message: str
) -> None:
    container = shim.launch(*argv, **changes)
    record = container.ended()
    assert (record.exit_code, record.reason, record.message) == (128, "StartError", message)
    assert not container.place.started.exists()
    assert container.log() == b""


@pytest.mark.parametrize(
    ("argv", "arguments", "message"),
    [
        (("/no/such/command",), (), 'exec: "/no/such/command": no such file or directory'),
        (("/bin/true",), ("--chdir", "/x"), 'chdir "/x": no such file or directory'),
        (("/bin/true",), ("--no-such",), "bubblewrap: Unknown option --no-such"),
    ],
)
@pytest.mark.parametrize("tty", [False, True])
def test_what_cannot_be_started_in_a_sandbox_says_why(
    shim: ShimOnTrial, argv: tuple[str, ...], arguments: tuple[str, ...], message: str, tty: bool
) -> None:
    container = shim.launch(*argv, tty=tty, **isolated(*arguments))
    record = container.ended()
    assert (record.exit_code, record.reason, record.message) == (128, "StartError", message)
    assert not container.place.started.exists()
    assert container.log() == b""


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("/no/such/command", 'exec: "/no/such/command": no such file or directory'),
        ("no-such-command", 'exec: "no-such-command": no such file or directory'),
        ("/etc/passwd", 'exec: "/etc/passwd": permission denied'),
    ],
)
def test_what_setsid_cannot_start_says_why(shim: ShimOnTrial, command: str, message: str) -> None:
    container = shim.launch(command, tty=True, setsid=SETSID, **isolated())
    record = container.ended()
    assert (record.exit_code, record.reason, record.message) == (128, "StartError", message)
    assert not container.place.started.exists()
    assert container.log() == b""


def test_a_bubblewrap_that_is_not_there_says_so(shim: ShimOnTrial) -> None:
    record = shim.launch("/bin/true", bubblewrap=("/no/bwrap",), cwd="").ended()
    assert record.message == 'exec: "/no/bwrap": no such file or directory'


def test_a_launch_that_makes_no_sense_is_refused(shim: ShimOnTrial) -> None:
    container = shim.write_launch("/bin/true")
    container.place.launch.write_text('{"argv": ["/bin/true"]}')
    shim.send(signal.SIGHUP)
    record = container.ended()
    assert (record.reason, "launch.json is unusable" in record.message) == ("StartError", True)


def test_launches_of_another_sandbox_and_old_ones_are_left_alone(shim: ShimOnTrial) -> None:
    other = shim.launch("/bin/true", sandbox_id="another")
    old = shim.write_launch("/bin/true")
    old.place.exit.write_text("{}")
    shim.send(signal.SIGHUP)
    assert shim.launch("/bin/true").ended().exit_code == 0
    assert not other.place.exit.exists()
    assert not old.place.started.exists()


def test_a_launch_is_started_once(shim: ShimOnTrial) -> None:
    container = shim.launch("/bin/echo", "once")
    for _ in range(5):
        shim.send(signal.SIGHUP)
    container.wait_for_exit()
    shim.send(signal.SIGHUP)
    shim.launch("/bin/true").ended()
    assert container.wrote() == b"once\n"


def test_a_launch_that_was_there_before_the_shim_is_started(tmp_path: Path) -> None:
    shim = ShimOnTrial(tmp_path)
    container = shim.write_launch("/bin/true")
    shim.start()
    assert container.ended().exit_code == 0
    assert shim.end() == 0


def test_nothing_of_the_shim_leaks_into_the_command(shim: ShimOnTrial) -> None:
    script = """
import os, signal, sys
files = {name for name in os.listdir("/proc/self/fd")}
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines())
umask = os.umask(0)
# Python itself ignores SIGPIPE (13) and SIGXFSZ (25); the C library 32 and 33, which are its
# own, in what posix_spawn starts: make, for one.
ignored = int(status["SigIgn"], 16) & ~(1 << 12 | 1 << 24 | 1 << 31 | 1 << 32)
print(sorted(files), oct(umask), int(status["SigBlk"], 16), ignored, os.getsid(0) == os.getpid())
"""
    for changes in ({}, isolated()):
        container = shim.launch(sys.executable, "-I", "-S", "-c", script, **changes)
        assert container.ended().exit_code == 0
        # 3 is the listed folder. In a sandbox the session was created outside.
        own = "False" if changes else "True"
        assert container.wrote().decode() == f"['0', '1', '2', '3'] 0o22 0 0 {own}\n"


def test_pipes_that_break_end_the_writer_as_anywhere(shim: ShimOnTrial) -> None:
    container = shim.launch("/bin/sh", "-c", "yes | head -n 1")
    assert container.ended().exit_code == 0
    assert container.wrote("stderr") == b""


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to switch users")
def test_user_and_groups_are_as_asked(shim: ShimOnTrial) -> None:
    container = shim.launch(
        "/bin/sh", "-c", "id -u; id -g; id -G", user=1234, group=2345, groups=(2345, 77)
    )
    assert container.ended().exit_code == 0
    assert container.wrote() == b"1234\n2345\n2345 77\n"


def test_no_command_gains_privileges(shim: ShimOnTrial) -> None:
    for changes in ({}, isolated()):
        container = shim.launch("/bin/grep", "NoNewPrivs", "/proc/self/status", **changes)
        container.ended()
        assert container.wrote() == b"NoNewPrivs:\t1\n"


def test_the_command_is_put_into_its_cgroups(shim: ShimOnTrial, tmp_path: Path) -> None:
    procs = tmp_path / "cgroup.procs"
    procs.touch()
    container = shim.launch("/bin/true", cgroups=(str(procs),))
    container.ended()
    assert procs.read_text() == str(container.started().process.pid)


@pytest.mark.parametrize(
    ("script", "events", "reason"),
    [
        ("kill -9 $$", "low 0\noom 1\noom_kill 1\n", "OOMKilled"),
        ("kill -9 $$", "oom_kill 0\n", "Error"),
        ("exit 1", "oom_kill 1\n", "Error"),
    ],
)
def test_out_of_memory(
    shim: ShimOnTrial, tmp_path: Path, script: str, events: str, reason: str
) -> None:
    path = tmp_path / "memory.events"
    path.write_text(events)
    assert shim.launch("/bin/sh", "-c", script, oom_events=str(path)).ended().reason == reason
