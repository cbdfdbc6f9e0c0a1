"""`podstatus exec` against the server of an agent whose processes are fakes."""

import asyncio
import fcntl
import os
import pty
import signal
import struct
import termios
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from podstatus.agent.daemon.endpoints_file import AgentEndpoints
from podstatus.agent.daemon.root_dir import RootDir
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import ContainerStatus, PodStatus
from podstatus.runtime.streams import StreamOptions, StreamUnavailableError, TerminalSize
from podstatus.testing.builders import ended, make_pod, waiting
from tests.support.processes.agent_process import ENVIRONMENT
from tests.support.processes.programs import COMMAND
from tests.support.web.node_server import NODE, TOKEN, Scene, serve, until

Result = tuple[int, bytes, bytes]
"""Exit code, standard output and standard error."""


class Agent(NamedTuple):
    """A server, and the root directory in which its agent seems to run."""

    scene: Scene
    root_dir: Path


@asynccontextmanager
async def agent_of(tmp_path: Path, *pods: Pod) -> AsyncIterator[Agent]:
    async with serve(tmp_path, *pods) as scene:
        with RootDir(tmp_path / "root") as root:
            endpoints = AgentEndpoints(
                apiserver="",
                agent=scene.url,
                token=TOKEN,
                agent_certificate=str(scene.certificate),
                node=NODE,
                pid=1,
            )
            root.write_endpoints(endpoints)
            yield Agent(scene, root.path)


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[Agent]:
    async with agent_of(tmp_path) as agent:
        yield agent


def command_line(root_dir: Path, *words: str) -> list[str]:
    return [*COMMAND, "exec", "-n", "ns", "--root-dir", str(root_dir), *words]


async def run(agent: Agent, *words: str, stdin: bytes = b"") -> Result:
    """Run the command to its end."""
    process = await asyncio.create_subprocess_exec(
        *command_line(agent.root_dir, *words), stdin=-1, stdout=-1, stderr=-1, env=ENVIRONMENT
    )
    out, err = await process.communicate(stdin)
    talks = agent.scene.runtime.talks
    assert all(talk.request.stdin == ("-i" in words) for talk in talks)
    await until(lambda: all(talk.closed.is_set() for talk in talks))
    return process.returncode or 0, out, err


@pytest.mark.parametrize(
    ("words", "stdin", "result"),
    [
        (("p", "--", "both"), b"", (0, b"out", b"err")),
        (("-c", "app", "p", "--", "exit", "7"), b"", (7, b"", b"")),
        (("pod/p", "--", "both"), b"", (0, b"out", b"err")),
        (("p", "-i", "--", "cat"), b"x" * 100_000, (0, b"x" * 100_000, b"")),
        (("p", "--", "echo", "-l", "\udcff a"), b"", (0, b"-l \xff a", b"")),
    ],
)
async def test_streams_and_exit_code_are_those_of_the_command(
    agent: Agent, words: tuple[str, ...], stdin: bytes, result: Result
) -> None:
    assert await run(agent, *words, stdin=stdin) == result


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("none", "--", "ls"),
            "podstatus: no pod 'none' in namespace ns is bound to node node-1; to see why: ",
        ),
        (("p", "-c", "x", "--", "ls"), "podstatus: container x is not valid for pod p out of: app"),
    ],
)
async def test_what_does_not_exist_is_reported(
    agent: Agent, words: tuple[str, ...], message: str
) -> None:
    code, out, err = await run(agent, *words)
    assert (code, out) == (1, b"")
    assert err.decode().startswith(message)


async def test_a_command_that_cannot_start_is_reported(agent: Agent) -> None:
    agent.scene.runtime.problem = StreamUnavailableError("no such file")
    code, _, err = await run(agent, "p", "--", "ls")
    assert (code, err) == (
        1,
        b"podstatus: Internal error occurred: error executing command in container: no such file\n",
    )


async def test_the_reason_of_a_refusal_is_reported(agent: Agent) -> None:
    agent.scene.pods.running.clear()
    result = await run(agent, "p", "--", "ls")
    assert result == (1, b"", b'podstatus: container not found ("app")\n')


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (ended("app"), "it has terminated (Completed, exit code 0)"),
        (
            waiting("app", "CrashLoopBackOff"),
            "it is waiting (CrashLoopBackOff); to see why: {describe}",
        ),
    ],
)
async def test_the_state_of_a_container_that_does_not_run_is_reported(
    tmp_path: Path, status: ContainerStatus, reason: str
) -> None:
    pod = make_pod("p", namespace="ns", status=PodStatus(container_statuses=(status,)))
    async with agent_of(tmp_path, pod) as agent:
        agent.scene.pods.running.clear()
        code, _, err = await run(agent, "p", "--", "ls")
    describe = f"podstatus describe pod p -n ns --root-dir {agent.root_dir}"
    reason = reason.format(describe=describe)
    assert (code, err.decode()) == (1, f'podstatus: container not found ("app"): {reason}\n')


async def test_without_a_terminal_there_is_no_tty(agent: Agent) -> None:
    code, out, err = await run(agent, "p", "-i", "-t", "--", "cat", stdin=b"x")
    assert (code, out, err) == (0, b"x", b"Unable to use a TTY - input is not a terminal\n")


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """The two sides of a terminal; a test may close the first."""
    master, slave = pty.openpty()
    yield master, slave
    os.close(slave)
    with suppress(OSError):
        os.close(master)


async def test_a_terminal_is_raw_and_its_size_is_followed(
    agent: Agent, terminal: tuple[int, int]
) -> None:
    master, slave = terminal
    set_size(slave, 24, 80)
    process = await asyncio.create_subprocess_exec(
        *command_line(agent.root_dir, "p", "-it", "--", "cat", "5"),
        stdin=slave,
        stdout=-1,
        stderr=-1,
        env=ENVIRONMENT,
    )
    assert process.stdout is not None
    talks = agent.scene.runtime.talks
    await until(lambda: bool(talks and talks[0].sizes))
    (talk,) = talks
    set_size(slave, 30, 100)
    process.send_signal(signal.SIGWINCH)
    await until(lambda: len(talk.sizes) == 2)
    os.write(master, b"\x03")  # Ctrl-C is for the command
    await until(lambda: talk.written == 1)
    assert await process.stdout.read(1) == b"\x03"
    assert talk.request == StreamOptions(stdin=True, stdout=True, stderr=False, tty=True)
    assert talk.sizes == [TerminalSize(columns=80, rows=24), TerminalSize(columns=100, rows=30)]
    os.close(master)
    _, err = await process.communicate()
    assert (process.returncode, err) == (5, b"")


async def test_the_terminal_is_restored_after_a_signal(
    agent: Agent, terminal: tuple[int, int]
) -> None:
    _, slave = terminal
    before = termios.tcgetattr(slave)
    process = await asyncio.create_subprocess_exec(
        *command_line(agent.root_dir, "p", "-it", "--", "sleep"),
        stdin=slave,
        stdout=slave,
        stderr=-1,
        env=ENVIRONMENT,
    )
    talks = agent.scene.runtime.talks
    await until(lambda: bool(talks and talks[0].sizes))
    assert termios.tcgetattr(slave) != before
    process.terminate()
    _, err = await process.communicate()
    await until(talks[0].closed.is_set)
    assert (process.returncode, err) == (1, b"podstatus: ended by SIGTERM\n")
    assert termios.tcgetattr(slave) == before


def set_size(terminal: int, rows: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
