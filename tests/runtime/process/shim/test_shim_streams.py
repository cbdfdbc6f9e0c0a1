"""Input and output of containers, with real processes."""

import contextlib
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.runtime.process.shim.isolated import SETSID, isolated
from tests.runtime.process.shim_on_trial import Container, ShimOnTrial, wait_for

WRITE = "import os, sys; os.write(1, bytes.fromhex(sys.argv[1]))"


def write_input(container: Container, data: bytes) -> int:
    """Open the FIFO as an attach session does, and write; closing it ends the session."""
    wait_for(container.place.stdin.exists, named="the FIFO")

    def opened() -> int | None:
        with contextlib.suppress(OSError):
            return os.open(container.place.stdin, os.O_WRONLY | os.O_NONBLOCK)
        return None

    fifo = wait_for(opened, named="a reader of the FIFO")
    os.set_blocking(fifo, True)
    os.write(fifo, data)
    return fifo


@pytest.mark.parametrize(
    "wrote",
    [
        b"plain\n",
        b"\x00\xff\xfe\x80 \r\n\x1b[31mred\x1b[0m\n",
        b"no end",
        b"x" * 100_000 + b"\nshort\n",
        b"",
        bytes(range(256)),
    ],
    ids=["plain", "binary", "unfinished", "long", "nothing", "all"],
)
def test_bytes_pass_unchanged(shim: ShimOnTrial, tmp_path: Path, wrote: bytes) -> None:
    (tmp_path / "text").write_bytes(wrote)
    container = shim.launch("cat", str(tmp_path / "text"))
    assert container.wait_for_exit().exit_code == 0
    assert container.wrote() == wrote
    assert container.wrote("stderr") == b""


def test_both_streams_are_distinguished(shim: ShimOnTrial) -> None:
    container = shim.launch("/bin/sh", "-c", "echo out; echo err >&2; echo out2")
    container.wait_for_exit()
    assert container.wrote("stdout") == b"out\nout2\n"
    assert container.wrote("stderr") == b"err\n"


def test_a_line_is_in_the_log_while_the_command_runs(shim: ShimOnTrial) -> None:
    container = shim.launch("/bin/sh", "-c", "echo now; sleep 1000")
    container.wait_for_text(b"now\n")


def test_much_output_is_complete_and_the_monitor_does_not_grow(shim: ShimOnTrial) -> None:
    line = b"0123456789" * 10
    size = len(line + b"\n") * 500_000
    script = f"yes {line.decode()} | head -c {size}; echo end; exec sleep 1000"
    container = shim.launch("/bin/sh", "-c", script, log_max_bytes=10**9)
    monitor = container.started().monitor.pid
    before = _resident(monitor)
    wait_for(lambda: _ends_with(container.place.log, b" end\n"), named="the end")
    assert _resident(monitor) - before < 8 * 2**20
    os.kill(container.started().process.pid, signal.SIGKILL)
    container.wait_for_exit()
    wrote = container.wrote()
    assert wrote == (line + b"\n") * 500_000 + b"end\n"


def _ends_with(path: Path, end: bytes) -> bool:
    if not path.exists() or path.stat().st_size < len(end):
        return False
    with path.open("rb") as file:
        file.seek(-len(end), os.SEEK_END)
        return file.read() == end


def _resident(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


def test_short_lines_without_end_are_rotated_away(shim: ShimOnTrial) -> None:
    container = shim.launch("/bin/sh", "-c", "seq 1000000", log_max_bytes=2**20, log_max_files=3)
    assert container.wait_for_exit().exit_code == 0
    files = list(container.place.path.glob("0.log*"))
    assert len(files) == 3
    assert all(path.stat().st_size <= 2**20 for path in files)
    numbers = [int(line) for line in container.wrote().split()]
    assert numbers == list(range(numbers[0], 1_000_001))


def test_input_is_empty_unless_asked_for(shim: ShimOnTrial) -> None:
    container = shim.launch("/bin/sh", "-c", "cat; readlink /proc/self/fd/0")
    container.wait_for_exit()
    assert container.wrote() == b"/dev/null\n"
    assert not container.place.stdin.exists()


@pytest.mark.parametrize("sandboxed", [False, True])
def test_input_does_not_end_with_a_writer(shim: ShimOnTrial, sandboxed: bool) -> None:
    container = shim.launch("cat", stdin=True, **isolated() if sandboxed else {})
    for text in (b"first\n", b"second\n"):
        os.close(write_input(container, text))
        container.wait_for_text(text)
    assert not container.place.exit.exists()


def test_input_ends_with_the_first_writer_if_once(shim: ShimOnTrial) -> None:
    container = shim.launch("cat", stdin=True, stdin_once=True)
    fifo = write_input(container, b"only\n")
    container.wait_for_text(b"only\n")
    assert not container.place.exit.exists()
    os.close(fifo)
    assert container.wait_for_exit().exit_code == 0
    with pytest.raises(OSError, match="No such device or address"):
        os.open(container.place.stdin, os.O_WRONLY | os.O_NONBLOCK)


def test_much_input_arrives(shim: ShimOnTrial) -> None:
    container = shim.launch("wc", "-c", stdin=True, stdin_once=True)
    fifo = write_input(container, b"")
    data = memoryview(b"x" * 3_000_000)
    while data:
        data = data[os.write(fifo, data) :]
    os.close(fifo)
    container.wait_for_exit()
    assert container.wrote() == b"3000000\n"


def test_a_command_that_closes_its_input_does_not_mind_more(shim: ShimOnTrial) -> None:
    container = shim.launch(
        "/bin/sh", "-c", "exec < /dev/null; echo closed; sleep 1000", stdin=True
    )
    container.wait_for_text(b"closed")
    fifo = write_input(container, b"x")
    wait_for(lambda: _is_broken(fifo), named="a FIFO without a reader")
    os.close(fifo)
    assert not container.place.exit.exists()


def _is_broken(fifo: int) -> bool:
    try:
        os.write(fifo, b"x")
    except BrokenPipeError:
        return True
    return False


def test_a_fifo_that_is_none_is_refused(shim: ShimOnTrial) -> None:
    container = shim.write_launch("cat", stdin=True)
    container.place.stdin.symlink_to("/etc/passwd")
    shim.send(signal.SIGHUP)
    assert container.ended().reason == "StartError"


@pytest.mark.parametrize("sandboxed", [False, True])
def test_a_terminal_has_a_size_that_changes(shim: ShimOnTrial, sandboxed: bool) -> None:
    script = "test -t 0 && test -t 1 && test -t 2 && stty size; read line; stty size; read line"
    changes = isolated("--setenv", "PATH", "/bin:/usr/bin") if sandboxed else {}
    container = shim.write_launch("/bin/sh", "-c", script, tty=True, stdin=True, **changes)
    (container.place.path / "winsize").write_text("24 80")
    shim.send(signal.SIGHUP)
    container.wait_for_text(b"24 80\r\n")
    (container.place.path / "winsize").write_text("50 132")
    os.kill(container.started().monitor.pid, signal.SIGWINCH)
    fifo = write_input(container, b"\n")
    container.wait_for_text(b"50 132\r\n")
    os.close(fifo)
    os.kill(container.started().monitor.pid, signal.SIGTERM)
    assert container.wait_for_exit().exit_code == 137


def on_a_terminal(*, sandboxed: bool) -> dict[str, object]:
    environment = {"PATH": "/bin:/usr/bin", "PS1": "prompt$ "}
    if not sandboxed:
        return {"env": environment, "tty": True, "stdin": True}
    arguments = [word for pair in environment.items() for word in ("--setenv", *pair)]
    return {**isolated(*arguments), "setsid": SETSID, "tty": True, "stdin": True}


SHELLS = [("/bin/sh", "-i"), ("/bin/bash", "--norc", "-i")]


@pytest.mark.parametrize("shell", SHELLS, ids=["sh", "bash"])
@pytest.mark.parametrize("sandboxed", [False, True])
@pytest.mark.parametrize("code", [0, 7])
def test_a_shell_on_a_terminal_exits_as_asked(
    shim: ShimOnTrial, shell: tuple[str, ...], sandboxed: bool, code: int
) -> None:
    container = shim.launch(*shell, **on_a_terminal(sandboxed=sandboxed))
    container.wait_for_text(b"prompt$ ")
    fifo = write_input(container, b"exit %d\n" % code)
    assert container.wait_for_exit().exit_code == code
    os.close(fifo)
    assert b"tty" not in container.wrote()


@pytest.mark.parametrize("shell", SHELLS, ids=["sh", "bash"])
@pytest.mark.parametrize("sandboxed", [False, True])
def test_ctrl_c_and_ctrl_z_reach_the_foreground_job_of_a_shell(
    shim: ShimOnTrial, shell: tuple[str, ...], sandboxed: bool
) -> None:
    container = shim.launch(*shell, **on_a_terminal(sandboxed=sandboxed))
    container.wait_for_text(b"prompt$ ")
    # Split words: the terminal also echoes the input.
    job = (
        b'sh -c \'trap "echo res"umed CONT; trap "echo inter"rupted\\;exit INT;'
        b'echo job=o""n; while :; do sleep 0.1; done\'\n'
    )
    fifo = write_input(container, job)
    container.wait_for_text(b"\njob=on")
    os.write(fifo, b"\x1a")
    container.wait_for_text(b"topped")
    os.write(fifo, b"fg\n")
    container.wait_for_text(b"resumed")
    os.write(fifo, b"\x03")
    container.wait_for_text(b"interrupted")
    os.write(fifo, b"exit 0\n")
    assert container.wait_for_exit().exit_code == 0
    os.close(fifo)


def test_a_command_in_a_sandbox_controls_its_terminal(shim: ShimOnTrial) -> None:
    script = (
        "import os; open('/dev/tty');"
        "print(os.getpid(), os.getsid(0), os.getpgrp(), os.tcgetpgrp(0))"
    )
    argv = (sys.executable, "-I", "-S", "-c", script)
    container = shim.launch(*argv, **on_a_terminal(sandboxed=True))
    assert container.wait_for_exit().exit_code == 0
    assert container.wrote() == b"1 1 1 1\r\n"


@pytest.mark.parametrize("code", [126, 127])
def test_a_command_that_exits_as_setsid_does_was_started(shim: ShimOnTrial, code: int) -> None:
    argv = ("/bin/sh", "-c", f"echo words; exit {code}")
    container = shim.launch(*argv, **on_a_terminal(sandboxed=True))
    record = container.wait_for_exit()
    assert (record.exit_code, record.reason) == (code, "Error")
    assert container.wrote() == b"words\r\n"


def test_ctrl_c_reaches_what_runs_on_a_terminal(shim: ShimOnTrial) -> None:
    # Not from a shell: dash handles the signal itself while it forks.
    container = shim.launch("/bin/sleep", "1000", tty=True, stdin=True)
    container.started()
    os.close(write_input(container, b"\x03"))
    assert container.wait_for_exit().exit_code == 130


def test_lines_of_a_chatty_command_are_complete(shim: ShimOnTrial) -> None:
    script = "import os\nfor n in range(20000): os.write(1 + n % 2, b'%d\\n' % n)"
    container = shim.launch(sys.executable, "-I", "-S", "-c", script)
    assert container.wait_for_exit().exit_code == 0
    numbers = [*container.wrote().split(), *container.wrote("stderr").split()]
    assert sorted(map(int, numbers)) == list(range(20000))
