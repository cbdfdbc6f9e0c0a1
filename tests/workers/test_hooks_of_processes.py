"""Hooks with the process runtime."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podstatus.base.system_clock import SystemClock
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.runtime_facts import ContainerFacts, PodFacts
from podstatus.probes.http_hook import send_hook_request
from podstatus.runtime.process.process_runtime import ProcessRuntime
from podstatus.workers.action_executor import ActionsOutcome
from podstatus.workers.actions.model import ContainerKind, PodActions, StartContainer
from tests.support.pod_services import PodServices
from tests.support.processes.process_pods import pod_of
from tests.support.processes.process_runtime import need_bubblewrap, open_process_runtime
from tests.support.world_in_memory import ListeningRecorder


class Node:
    """A process runtime, and the recorded events."""

    def __init__(self, runtime: ProcessRuntime) -> None:
        clock = SystemClock()
        self._runtime = runtime
        self._recorder = ListeningRecorder(clock)
        services = PodServices(
            clock=clock, runtime=runtime, recorder=self._recorder, http_get=send_hook_request
        )
        self._containers = services.executor

    @property
    def messages(self) -> list[str]:
        return [event.message for event in self._recorder.events]

    @property
    def reasons(self) -> list[str]:
        return [event.reason for event in self._recorder.events]

    async def start(self, pod: Pod) -> bool:
        (container,) = pod.spec.containers or ()
        start = StartContainer(container=container, kind=ContainerKind.REGULAR, restart_count=0)
        actions = PodActions(start_pod=True, start=(start,))
        return await self._containers.apply(pod, PodFacts(), actions) is ActionsOutcome.DONE

    async def stop(self, pod: Pod, grace: float) -> ContainerFacts:
        """Stop the pod; return the final facts of its container."""
        await self._containers.stop_pod(pod, pod.uid, await self.facts(pod), grace)
        return (await self.facts(pod)).containers[0]

    async def facts(self, pod: Pod) -> PodFacts:
        (found,) = await self._runtime.list_pods(pod.uid)
        return found.facts

    def why(self, pod: Pod) -> str:
        return self._containers.start_failures(pod.uid)["a"].message


@asynccontextmanager
async def node_with(folder: Path, pod: Pod, *, isolated: bool) -> AsyncIterator[Node]:
    async with open_process_runtime(folder, isolated=isolated) as runtime:
        try:
            yield Node(runtime)
        finally:
            await runtime.stop_pod(pod.uid)
            await runtime.remove_pod(pod.uid)


@pytest.fixture(params=["none", pytest.param("bubblewrap", marks=need_bubblewrap)])
def isolated(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "bubblewrap")


@pytest.fixture
def word() -> str:
    """Marks the processes of a test."""
    return f"word-{uuid.uuid4().hex}"


def shell(command: str) -> dict[str, Any]:
    return {"exec": {"command": ["sh", "-c", command]}}


def a_pod(word: str, command: str, **hooks: dict[str, Any]) -> Pod:
    """A container that runs until it is stopped, with its own folder."""
    folder = f"/tmp/{word}"  # noqa: S108 - of the container
    return pod_of(
        {
            "command": ["sh", "-c", command],
            "env": [{"name": "DIR", "value": folder}],
            "volumeMounts": [{"name": "work", "mountPath": folder}],
            "lifecycle": hooks,
        },
        volumes=[{"name": "work", "emptyDir": {}}],
        terminationGracePeriodSeconds=10,
        automountServiceAccountToken=False,
    )


def runs(word: str) -> bool:
    """Whether a process with this argument exists."""
    return any(word.encode() in _arguments(process) for process in Path("/proc").glob("[0-9]*"))


def _arguments(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


async def test_commands_are_run_where_the_container_is(
    tmp_path: Path, word: str, *, isolated: bool
) -> None:
    ends = 'trap "test -f $DIR/last && exit 0; exit 9" TERM; touch $DIR/up; sleep 60 & wait'
    pod = a_pod(
        word,
        ends,
        postStart=shell("until test -f $DIR/up; do sleep 0.1; done"),
        preStop=shell("touch $DIR/last"),
    )

    async with node_with(tmp_path, pod, isolated=isolated) as node:
        assert await node.start(pod)
        assert (await node.stop(pod, 10)).exit_code == 0
        assert node.reasons == ["Pulled", "Created", "Started", "Killing"]
        assert node.messages[0] == (
            'Container image "x" is not used: the process runtime runs programs on the host'
        )


async def test_a_container_whose_command_fails_is_ended(
    tmp_path: Path, word: str, *, isolated: bool
) -> None:
    pod = a_pod(
        word,
        'trap "exit 3" TERM; touch $DIR/up; sleep 60 & wait',
        postStart=shell("until test -f $DIR/up; do sleep 0.1; done; echo no >&2; exit 6"),
    )

    async with node_with(tmp_path, pod, isolated=isolated) as node:
        assert not await node.start(pod)
        assert 'exited with 6: no\n, message: "no\\n"' in node.why(pod)
        assert (await node.facts(pod)).containers[0].exit_code == 3
        assert node.reasons[3:] == ["FailedPostStartHook", "Killing"]


async def test_a_command_that_hangs_is_ended_with_the_grace(
    tmp_path: Path, word: str, *, isolated: bool
) -> None:
    pod = a_pod(
        word,
        'trap "exit 4" TERM; sleep 60 & wait',
        preStop=shell(f": {word}-hook; sleep 50 & sleep 50"),
    )

    async with node_with(tmp_path, pod, isolated=isolated) as node:
        assert await node.start(pod)
        began = time.monotonic()
        stopping = asyncio.ensure_future(node.stop(pod, 1))
        while not runs(f"{word}-hook"):
            assert not stopping.done()
            await asyncio.sleep(0.05)
        assert (await stopping).exit_code == 4
        assert 1 <= time.monotonic() - began < 20
        assert not runs(f"{word}-hook")
        assert node.reasons[3:] == ["Killing", "FailedPreStopHook"]


async def test_a_stop_of_the_agent_does_not_wait_for_a_hook(
    tmp_path: Path, word: str, *, isolated: bool
) -> None:
    pod = a_pod(
        word,
        'trap "exit 4" TERM; sleep 60 & wait',
        postStart=shell(f": {word}-hook; trap '' TERM; sleep 50 & sleep 50"),
    )

    async with node_with(tmp_path, pod, isolated=isolated) as node:
        starting = asyncio.ensure_future(node.start(pod))
        while not runs(f"{word}-hook"):
            assert not starting.done()
            await asyncio.sleep(0.05)
        began = time.monotonic()
        starting.cancel()
        await asyncio.wait([starting])
        assert starting.cancelled()
        assert time.monotonic() - began < 20
        assert not runs(f"{word}-hook")


async def test_a_server_is_asked(tmp_path: Path, word: str, *, isolated: bool) -> None:
    asked: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).decode().split()[1])
        writer.write(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    place = {"host": "127.0.0.1", "port": port}
    pod = a_pod(
        word,
        'trap "exit 4" TERM; sleep 60 & wait',
        postStart={"httpGet": {"path": "/up", **place}},
        preStop={"httpGet": {"path": "/down", **place}},
    )
    async with server, node_with(tmp_path, pod, isolated=isolated) as node:
        assert await node.start(pod)
        await node.stop(pod, 10)
        assert asked == ["/up", "/down"]
        assert "FailedPreStopHook" not in node.reasons
