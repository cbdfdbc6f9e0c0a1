"""`podstatus exec` against the server of an agent whose processes are fakes."""

import asyncio
import fcntl
import os
import pty
import signal
import struct
import termios
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from podstatus.agent.daemon.endpoints_file import AgentEndpoints
from podstatus.agent.daemon.root_dir import RootDir
from podstatus.runtime.streams import StreamOptions, StreamUnavailableError, TerminalSize
from tests.support.processes.agent_process import ENVIRONMENT
from tests.support.processes.programs import COMMAND
from tests.support.web.node_server import NODE, TOKEN, Scene, play, until

Result = tuple[int, bytes, bytes]
"""Exit code, standard output and standard error."""


def with_agent(folder: Path, act: Callable[[Scene, Path], Awaitable[Result]]) -> Result:
    """Run `act` with the server, and the root-dir in which its agent seems to run."""

    async def play_act(scene: Scene) -> Result:
        with RootDir(folder / "root") as root:
            endpoints = AgentEndpoints(
                apiserver="",
                agent=scene.url,
                token=TOKEN,
                agent_certificate=str(scene.certificate),
                node=NODE,
                pid=1,
            )
            root.write_endpoints(endpoints)
            return await act(scene, root.path)

    return play(folder, play_act)


def command_line(root_dir: Path, *words: str) -> list[str]:
    return [*COMMAND, "exec", "-n", "ns", "--root-dir", str(root_dir), *words]


def run(folder: Path, *words: str, stdin: bytes = b"", problem: str = "") -> Result:
    """Run the command to its end."""

    async def act(scene: Scene, root_dir: Path) -> Result:
        scene.runtime.problem = StreamUnavailableError(problem) if problem else None
        process = await asyncio.create_subprocess_exec(
            *command_line(root_dir, *words), stdin=-1, stdout=-1, stderr=-1, env=ENVIRONMENT
        )
        out, err = await process.communicate(stdin)
        assert all(talk.request.stdin == ("-i" in words) for talk in scene.runtime.talks)
        await until(lambda: all(talk.closed.is_set() for talk in scene.runtime.talks))
        return process.returncode or 0, out, err

    return with_agent(folder, act)


@pytest.mark.parametrize(
    ("words", "stdin", "result"),
    [
        (("p", "--", "both"), b"", (0, b"out", b"err")),
        (("-c", "app", "p", "--", "exit", "7"), b"", (7, b"", b"")),
        (("p", "-i", "--", "cat"), b"x" * 100_000, (0, b"x" * 100_000, b"")),
        (("p", "--", "echo", "-l", "\udcff a"), b"", (0, b"-l \xff a", b"")),
    ],
)
def test_streams_and_exit_code_are_those_of_the_command(
    tmp_path: Path, words: tuple[str, ...], stdin: bytes, result: Result
) -> None:
    assert run(tmp_path, *words, stdin=stdin) == result


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("none", "--", "ls"), "podstatus: no pod 'none' in namespace ns on node node-1; see: "),
        (("p", "-c", "x", "--", "ls"), "podstatus: container x is not valid for pod p out of: app"),
    ],
)
def test_what_does_not_exist_is_reported(
    tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    code, out, err = run(tmp_path, *words)
    assert (code, out) == (1, b"")
    assert err.decode().startswith(message)


def test_a_command_that_cannot_start_is_reported(tmp_path: Path) -> None:
    code, _, err = run(tmp_path, "p", "--", "ls", problem="no such file")
    assert (code, err) == (
        1,
        b"podstatus: Internal error occurred: error executing command in container: no such file\n",
    )


def test_the_reason_of_a_refusal_is_reported(tmp_path: Path) -> None:
    async def act(scene: Scene, root_dir: Path) -> Result:
        scene.pods.running.clear()
        process = await asyncio.create_subprocess_exec(
            *command_line(root_dir, "p", "--", "ls"), stdin=-3, stderr=-1, env=ENVIRONMENT
        )
        _, err = await process.communicate()
        return process.returncode or 0, b"", err

    assert with_agent(tmp_path, act) == (1, b"", b'podstatus: container not found ("app")\n')


def test_without_a_terminal_there_is_no_tty(tmp_path: Path) -> None:
    code, out, err = run(tmp_path, "p", "-i", "-t", "--", "cat", stdin=b"x")
    assert (code, out, err) == (0, b"x", b"Unable to use a TTY - input is not a terminal\n")


def test_a_terminal_is_raw_and_its_size_is_followed(tmp_path: Path) -> None:
    terminal, slave = pty.openpty()

    async def act(scene: Scene, root_dir: Path) -> Result:
        set_size(slave, 24, 80)
        process = await asyncio.create_subprocess_exec(
            *command_line(root_dir, "p", "-it", "--", "cat", "5"),
            stdin=slave,
            stdout=-1,
            stderr=-1,
            env=ENVIRONMENT,
        )
        assert process.stdout is not None
        await until(lambda: bool(scene.runtime.talks and scene.runtime.talks[0].sizes))
        (talk,) = scene.runtime.talks
        set_size(slave, 30, 100)
        process.send_signal(signal.SIGWINCH)
        await until(lambda: len(talk.sizes) == 2)
        os.write(terminal, b"\x03")  # Ctrl-C is for the command
        await until(lambda: talk.written == 1)
        assert await process.stdout.read(1) == b"\x03"
        assert talk.request == StreamOptions(stdin=True, stdout=True, stderr=False, tty=True)
        assert talk.sizes == [
            TerminalSize(columns=80, rows=24),
            TerminalSize(columns=100, rows=30),
        ]
        os.close(terminal)
        _, err = await process.communicate()
        return process.returncode or 0, b"", err

    try:
        assert with_agent(tmp_path, act) == (5, b"", b"")
    finally:
        os.close(slave)


def test_the_terminal_is_restored_after_a_signal(tmp_path: Path) -> None:
    terminal, slave = pty.openpty()
    before = termios.tcgetattr(slave)

    async def act(scene: Scene, root_dir: Path) -> Result:
        process = await asyncio.create_subprocess_exec(
            *command_line(root_dir, "p", "-it", "--", "sleep"),
            stdin=slave,
            stdout=slave,
            stderr=-1,
            env=ENVIRONMENT,
        )
        await until(lambda: bool(scene.runtime.talks and scene.runtime.talks[0].sizes))
        assert termios.tcgetattr(slave) != before
        process.terminate()
        _, err = await process.communicate()
        await until(scene.runtime.talks[0].closed.is_set)
        return process.returncode or 0, b"", err

    try:
        assert with_agent(tmp_path, act) == (1, b"", b"podstatus: ended by SIGTERM\n")
        assert termios.tcgetattr(slave) == before
    finally:
        os.close(slave)
        os.close(terminal)


def set_size(terminal: int, rows: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
