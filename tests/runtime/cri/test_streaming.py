"""Exec and attach through the streaming server of a real containerd."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec import structs

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.runtime.cri.cri_runtime import CriRuntime
from podstatus.runtime.streams import (
    OutputStream,
    ProcessStream,
    StreamOptions,
    StreamUnavailableError,
    TerminalSize,
)
from podstatus.testing.builders import make_pod
from tests.support.processes.containerd import BUSYBOX, Containerd
from tests.support.processes.cri_runtime import open_cri_runtime

pytestmark = pytest.mark.containerd
TERMINAL = StreamOptions(stdin=True, stdout=True, stderr=False, tty=True)


def a_pod(script: str, *, tty: bool = False) -> Pod:
    container = Container(
        name="app", image=BUSYBOX, command=("/bin/sh", "-c", script), stdin=tty, tty=tty
    )
    spec = PodSpec(containers=(container,), host_network=True)
    return structs.replace(make_pod("pod", uid="uid-1"), spec=spec)


class Running:
    """A running container, and sessions in it."""

    def __init__(self, runtime: CriRuntime, pod: Pod, id: str) -> None:
        self.runtime, self.pod, self.id = runtime, pod, id

    @asynccontextmanager
    async def exec(
        self, script: str, options: StreamOptions | None = None
    ) -> AsyncIterator[ProcessStream]:
        command = ("/bin/sh", "-c", script)
        options = options or StreamOptions()
        stream = await self.runtime.exec(self.pod.uid, self.id, command, options)
        try:
            yield stream
        finally:
            await stream.close()


async def output(stream: ProcessStream, until: bytes = b"") -> dict[OutputStream, bytes]:
    """Read to the end, or until the output has this text."""
    found = {OutputStream.STDOUT: b"", OutputStream.STDERR: b""}
    while (chunk := await stream.read()) is not None:
        found[chunk[0]] += chunk[1]
        if until and until in found[OutputStream.STDOUT]:
            break
    return found


@asynccontextmanager
async def running(containerd: Containerd, folder: Path, pod: Pod) -> AsyncIterator[Running]:
    async with open_cri_runtime(containerd.endpoint, folder) as runtime:
        (container,) = pod.spec.containers or ()
        await runtime.start_pod(pod)
        id = await runtime.start_container(pod, container, restart_count=0)
        yield Running(runtime, pod, id)


@pytest.fixture
async def app(containerd: Containerd, tmp_path: Path) -> AsyncIterator[Running]:
    async with running(containerd, tmp_path, a_pod("sleep 600")) as found:
        yield found


@pytest.mark.parametrize("code", [0, 3])
async def test_both_outputs_and_the_exit_code(app: Running, code: int) -> None:
    async with app.exec(f"echo out; echo err >&2; exit {code}") as stream:
        found = await output(stream)
        assert await stream.wait() == code
    assert found == {OutputStream.STDOUT: b"out\n", OutputStream.STDERR: b"err\n"}


async def test_much_output_arrives_whole(app: Running) -> None:
    size = 300_000
    async with app.exec(f"tail -c {size} /bin/busybox") as stream:
        found = await output(stream)
        assert await stream.wait() == 0
    assert len(found[OutputStream.STDOUT]) == size


async def test_a_terminal(app: Running) -> None:
    async with app.exec("stty size; read x; echo got $x; cat; exit 4", TERMINAL) as stream:
        stream.resize(TerminalSize(columns=99, rows=33))
        await stream.write(b"hello\n")
        found = await output(stream, b"got hello")
        await stream.close_stdin()
        await output(stream)
        assert await stream.wait() == 4
    assert found[OutputStream.STDERR] == b""


async def test_what_cannot_be_executed_says_why(app: Running) -> None:
    stream = await app.runtime.exec(app.pod.uid, app.id, ("/none",), StreamOptions())
    assert await output(stream) == {OutputStream.STDOUT: b"", OutputStream.STDERR: b""}
    with pytest.raises(StreamUnavailableError, match="no such file or directory"):
        await stream.wait()
    await stream.close()


async def test_input_without_an_end_is_refused(app: Running) -> None:
    with pytest.raises(StreamUnavailableError, match="use a terminal"):
        async with app.exec("cat", StreamOptions(stdin=True)):
            pass


async def test_a_container_that_does_not_run(app: Running) -> None:
    await app.runtime.stop_container(app.pod.uid, app.id, grace_seconds=0)
    with pytest.raises(StreamUnavailableError, match="is not running"):
        async with app.exec("id"):
            pass


async def test_attach_shows_what_comes_and_leaves_it_running(
    containerd: Containerd, tmp_path: Path
) -> None:
    pod = a_pod("read x; echo got $x; sleep 600", tty=True)
    async with running(containerd, tmp_path, pod) as app:
        stream = await app.runtime.attach(pod.uid, app.id, TERMINAL)
        await stream.write(b"hello\n")
        await output(stream, b"got hello")
        await stream.close()
        ((listed,),) = [found.facts.containers for found in await app.runtime.list_pods(pod.uid)]
        assert listed.state.value == "running"
