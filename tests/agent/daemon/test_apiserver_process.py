"""The API server as a child process: start, restart, and no leftovers."""

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from podstatus.agent.daemon.apiserver_process import (
    APISERVER_COMMAND,
    READY_FD_VARIABLE,
    ApiServerStartError,
    EmbeddedApiServer,
    EmbeddedServerAccess,
    NodeTrust,
)
from podstatus.apiserver.state_dir import StateDir
from podstatus.base.backoff import Backoff
from podstatus.base.system_clock import SystemClock
from podstatus.client import NAMESPACES, ApiClient, kubeconfig_config

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
AT_ONCE = Backoff(initial_seconds=0.0, max_seconds=0.0)


def a_server(
    folder: Path,
    *,
    port: int = 0,
    clock: SystemClock | None = None,
    command: Sequence[str] = APISERVER_COMMAND,
) -> EmbeddedApiServer:
    trust = NodeTrust(authority=folder / "agent.crt", address="127.0.0.1")
    clock = clock or SystemClock()
    return EmbeddedApiServer(
        folder, folder / "log", port=port, clock=clock, node_trust=trust, command=command
    )


async def namespaces(folder: Path) -> bytes:
    async with ApiClient(kubeconfig_config(folder / "kubeconfig")) as client:
        return await client.list(NAMESPACES)


async def test_it_serves_and_ends(tmp_path: Path) -> None:
    async with a_server(tmp_path) as server:
        files = await server.start()
        assert b"kube-system" in await namespaces(tmp_path)
        assert files.kubeconfig == (tmp_path / "kubeconfig").read_bytes()
        assert files.token not in repr(files)
        pid = server.pid
    assert pid is not None
    assert not psutil.pid_exists(pid)
    assert "serving https" in (tmp_path / "log").read_text()


class Watched(EmbeddedApiServer):
    """One that says when it has started."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            folder,
            folder / "log",
            port=0,
            clock=SystemClock(),
            node_trust=NodeTrust(authority=folder / "agent.crt", address="127.0.0.1"),
            backoff=AT_ONCE,
        )
        self.started = asyncio.Event()

    async def start(self) -> EmbeddedServerAccess:
        files = await super().start()
        self.started.set()
        return files


async def test_a_dead_one_comes_back_on_the_same_port(tmp_path: Path) -> None:
    async with Watched(tmp_path) as server:
        before = await server.start()
        first = server.pid
        assert first is not None
        server.started.clear()
        keeper = asyncio.create_task(server.run())
        psutil.Process(first).send_signal(signal.SIGKILL)
        async with asyncio.timeout(60):
            await server.started.wait()
        assert server.pid != first
        assert b"kube-system" in await namespaces(tmp_path)
        assert (tmp_path / "kubeconfig").read_bytes() == before.kubeconfig
    await keeper


def test_a_killed_agent_leaves_no_server_behind(tmp_path: Path) -> None:
    agent = subprocess.Popen(
        [sys.executable, "-m", "tests.agent.daemon.kill_me", str(tmp_path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert agent.stdout is not None
    child = psutil.Process(int(agent.stdout.readline()))
    agent.kill()
    agent.communicate()
    child.wait(timeout=90)


async def test_the_server_of_a_killed_agent_is_waited_for(tmp_path: Path) -> None:
    last = StateDir(tmp_path)
    waits: list[float] = []

    class Clock(SystemClock):
        async def wait(self, seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 3:
                last.close()

    async with a_server(tmp_path, clock=Clock()) as server:
        assert (await server.start()).url
    assert len(waits) == 3


async def test_a_server_that_cannot_start_says_why_in_our_words(tmp_path: Path) -> None:
    async def run(port: int) -> None:
        async with a_server(tmp_path, port=port) as server:
            await server.start()

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ApiServerStartError) as error:
            await run(port)
    message = str(error.value)
    assert message.startswith(
        f"the API server did not start: cannot listen on 127.0.0.1 port {port}"
    )
    assert "pass another --apiserver-port" in message


async def test_a_long_log_is_put_aside(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as file:
        file.truncate(11 * 2**20)

    command = (sys.executable, "-c", "print('kaput')")
    async with a_server(tmp_path, command=command) as server:
        with pytest.raises(ApiServerStartError, match="did not start: kaput"):
            await server.start()
    assert (tmp_path / "log.1").stat().st_size == 11 * 2**20
    assert log.stat().st_size < 100


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("", "no output"),
        ('{"url": "https://127', "no output"),
        ("serving https://127.0.0.1:1\n", "DecodeError: JSON is malformed"),
        ('{"url": "https://127.0.0.1:1"}\n', "ValidationError: Object missing required field"),
    ],
)
async def test_a_child_without_a_whole_message_does_not_serve(
    tmp_path: Path, written: str, reason: str
) -> None:
    code = (
        "import os, sys; pipe = open(int(os.environ[sys.argv[1]]), 'w'); pipe.write(sys.argv[2]); "
        "pipe.close(); sys.stdin.read()"
    )
    command = (sys.executable, "-c", code, READY_FD_VARIABLE, written)
    async with a_server(tmp_path, command=command) as server:
        with pytest.raises(ApiServerStartError, match=f"did not start: {reason}"):
            await server.start()
        assert server.pid is None


async def test_the_child_gets_the_address_of_the_agent(tmp_path: Path) -> None:
    command = (sys.executable, "-c", "import sys; print(' '.join(sys.argv[1:]))")
    async with a_server(tmp_path, command=command) as server:
        pattern = f"--node-certificate-authority {tmp_path}/agent.crt --node-address 127.0.0.1"
        with pytest.raises(ApiServerStartError, match=pattern):
            await server.start()


async def test_a_machine_that_has_no_room_for_a_process_is_no_end_of_ours(tmp_path: Path) -> None:
    nowhere = (str(tmp_path / "python"),)
    async with a_server(tmp_path, command=nowhere) as server:
        with pytest.raises(ApiServerStartError, match="No such file"):
            await server.start()
        assert server.pid is None


async def test_an_emptied_folder_is_not_served_after_a_restart(tmp_path: Path) -> None:
    def remove_objects() -> None:
        for file in tmp_path.glob("objects.db*"):
            file.unlink()

    async with a_server(tmp_path) as server:
        await server.start()
        await server.stop()
        await asyncio.to_thread(remove_objects)
        with pytest.raises(ApiServerStartError, match="whose pods run on this node"):
            await server.start()
