"""Lists of pods: what changed is read once, and a failure is one error that the port names."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.runtime_facts import ContainerRunState
from podstatus.runtime.cri.api import containers as c
from podstatus.runtime.cri.api import sandboxes as s
from podstatus.runtime.cri.api.codec import CODEC
from podstatus.runtime.cri.client.channel import CriChannel
from podstatus.runtime.cri.client.runtime_service import RuntimeService
from podstatus.runtime.cri.pod_lister import PodLister
from podstatus.runtime.port import RuntimeDownError
from tests.support.processes.fake_cri_server import FakeCriServer

OF_POD = {
    "io.kubernetes.pod.uid": "u",
    "io.kubernetes.pod.name": "p",
    "io.kubernetes.pod.namespace": "n",
    "io.kubernetes.container.name": "app",
}


class Machine:
    """A runtime with one sandbox and some containers."""

    def __init__(self, server: FakeCriServer, lister: PodLister) -> None:
        self.server, self.lister = server, lister
        status = s.CriPodSandboxStatus(id="s1")
        server.answers["PodSandboxStatus"] = s.CriPodSandboxStatusResponse(status=status)

    def has(self, *states: int, labels: dict[str, str] = OF_POD) -> None:
        sandbox = s.CriPodSandbox(id="s1", labels=labels)
        containers = [
            c.CriContainer(id=f"c{n}", pod_sandbox_id="s1", state=state, labels=labels)
            for n, state in enumerate(states)
        ]
        self.server.answers["ListPodSandbox"] = s.CriListPodSandboxResponse(
            items=(CODEC.encode(sandbox),)
        )
        self.server.answers["ListContainers"] = c.CriListContainersResponse(
            containers=tuple(map(CODEC.encode, containers))
        )
        status = c.CriContainerStatus(id="c0", state=states[0] if states else 0)
        self.server.answers["ContainerStatus"] = c.CriContainerStatusResponse(status=status)

    async def states(self) -> list[ContainerRunState]:
        (pod,) = await self.lister.list_all()
        return [attempt.state for attempt in pod.facts.containers]

    def calls(self, method: str) -> int:
        return self.server.calls.count(method)


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    server, channel = FakeCriServer(), CriChannel(f"unix://{tmp_path}/s")
    lister = PodLister(RuntimeService(channel, request_seconds=20.0), "fake")
    async with server.serve(tmp_path / "s"):
        yield Machine(server, lister)
        await channel.close()


async def test_a_status_is_read_once_for_each_state(machine: Machine) -> None:
    for state, reads in (
        (c.CONTAINER_CREATED, 1),
        (c.CONTAINER_RUNNING, 2),
        (c.CONTAINER_RUNNING, 2),
        (c.CONTAINER_EXITED, 3),
        (c.CONTAINER_EXITED, 3),
    ):
        machine.has(state)
        await machine.lister.list_all()
        assert machine.calls("ContainerStatus") == reads
    assert await machine.states() == [ContainerRunState.EXITED]
    assert machine.calls("PodSandboxStatus") == 1


async def test_what_was_removed_is_read_again_when_it_is_back(machine: Machine) -> None:
    machine.has(c.CONTAINER_RUNNING)
    await machine.lister.list_all()
    machine.has()
    assert await machine.states() == []
    machine.has(c.CONTAINER_RUNNING)
    assert await machine.states() == [ContainerRunState.RUNNING]
    assert machine.calls("ContainerStatus") == 2


async def test_a_container_that_is_removed_while_it_is_listed_is_left_out(
    machine: Machine,
) -> None:
    machine.has(c.CONTAINER_RUNNING)
    machine.server.fail("ContainerStatus", grpc.StatusCode.NOT_FOUND, "not found")
    assert await machine.states() == []


@pytest.mark.parametrize("method", ["ListPodSandbox", "ListContainers", "ContainerStatus"])
@pytest.mark.parametrize("code", [grpc.StatusCode.UNKNOWN, grpc.StatusCode.UNAVAILABLE])
async def test_a_failure_means_that_nothing_is_known(
    machine: Machine, method: str, code: grpc.StatusCode
) -> None:
    machine.has(c.CONTAINER_RUNNING, c.CONTAINER_RUNNING)
    machine.server.fail(method, code, "server is not initialized yet")
    with pytest.raises(RuntimeDownError, match="server is not initialized yet"):
        await machine.lister.list_all()
    with pytest.raises(RuntimeDownError):
        await machine.lister.list_pod(PodUID("u"))


async def test_what_belongs_to_no_pod_is_not_listed(machine: Machine) -> None:
    machine.has(c.CONTAINER_RUNNING, labels={"made": "by hand"})
    assert await machine.lister.list_all() == ()


async def test_a_log_ends_with_its_container(machine: Machine) -> None:
    machine.has(c.CONTAINER_RUNNING)
    await machine.lister.list_all()
    assert machine.lister.has_ended("c0") is False
    machine.has(c.CONTAINER_EXITED)
    await machine.lister.list_all()
    assert machine.lister.has_ended("c0") is True
    assert machine.lister.has_ended("gone") is True
    assert machine.lister.log_path("gone") is None


@pytest.mark.parametrize(
    ("policy", "code", "written", "message"),
    [
        ("File", 1, "bye", "bye"),
        ("File", 1, "", ""),
        ("File", 1, None, ""),
        ("FallbackToLogsOnError", 1, "bye", "bye"),
        ("FallbackToLogsOnError", 1, "", "logged\n"),
        ("FallbackToLogsOnError", 0, "", ""),
    ],
)
async def test_the_termination_message(
    machine: Machine, tmp_path: Path, policy: str, code: int, written: str | None, message: str
) -> None:
    file, log = tmp_path / "message", tmp_path / "0.log"
    await asyncio.to_thread(log.write_text, "2026-01-01T00:00:00.000000000Z stdout F logged\n")
    if written is not None:
        await asyncio.to_thread(file.write_text, written)
    machine.has(c.CONTAINER_EXITED)
    status: dict[str, Any] = {
        "annotations": {
            "io.kubernetes.container.terminationMessagePath": "/dev/termination-log",
            "io.kubernetes.container.terminationMessagePolicy": policy,
        },
        "mounts": (c.CriMount(container_path="/dev/termination-log", host_path=str(file)),),
        "log_path": str(log),
    }
    machine.server.answers["ContainerStatus"] = c.CriContainerStatusResponse(
        status=c.CriContainerStatus(id="c0", state=c.CONTAINER_EXITED, exit_code=code, **status)
    )
    (pod,) = await machine.lister.list_all()
    assert pod.facts.containers[0].message == message
