"""A whole node in this process, on an API server in memory."""

import asyncio
import logging
import re
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from podstatus.agent.compose import agent as build_node
from podstatus.agent.compose.agent import NodeAgent
from podstatus.agent.compose.build_dependencies import BuildRuntime
from podstatus.agent.compose.runtime import build_runtime
from podstatus.agent.daemon import apiserver_process, run_agent
from podstatus.agent.errors import AgentError
from podstatus.base.service_heartbeats import Heartbeats
from podstatus.base.system_clock import SystemClock
from podstatus.runtime.port import ProbeResult
from podstatus.runtime.simulated.simulated_runtime import SimulatedRuntime
from podstatus.testing.apiserver import ApiServerThread
from podstatus.testing.clock import FakeClock
from tests.support.running_agent import node_context, running_agent

SECONDS = 90


@asynccontextmanager
async def a_node(
    folder: Path,
    server: ApiServerThread,
    *,
    runtime: BuildRuntime = build_runtime,
    healthz_port: str | None = None,
) -> AsyncIterator[asyncio.Task[None]]:
    """A node; the task that it runs in, once it serves."""
    clock = SystemClock()
    with node_context(folder / "root", server, healthz_port=healthz_port) as context:
        agent = NodeAgent(context, clock, Heartbeats(clock), runtime)
        async with running_agent(agent, SECONDS) as running:
            yield running.task


async def until(holds: Callable[[], bool]) -> None:
    while not await asyncio.to_thread(holds):
        await SystemClock().wait(0.02)


async def test_the_start_event_is_recorded_once(tmp_path: Path, server: ApiServerThread) -> None:
    def event_counts(reason: str) -> list[int]:
        events = server.list_objects("events")
        return [event["count"] for event in events if event["reason"] == reason]

    async with a_node(tmp_path, server):
        # Events are sent one after the other, so what comes later has not overtaken it.
        await until(lambda: bool(event_counts("NodeHasSufficientPID")))
        assert event_counts("Starting") == [1]


async def test_an_agent_is_ready_once_its_node_is_registered(
    tmp_path: Path, server: ApiServerThread
) -> None:
    clock = SystemClock()
    with node_context(tmp_path / "root", server, healthz_port=None) as context:
        agent = NodeAgent(context, clock, Heartbeats(clock), build_runtime)
        assert agent.not_ready_reason() == "the Node is not registered yet"
        async with running_agent(agent, SECONDS):
            await until(lambda: not agent.not_ready_reason())
            assert [node["metadata"]["name"] for node in server.list_objects("nodes")] == ["node"]


async def test_stalled_services_are_named_unless_the_runtime_does_not_answer(
    tmp_path: Path, server: ApiServerThread
) -> None:
    clock = FakeClock()
    heartbeats = Heartbeats(clock)
    with node_context(tmp_path / "root", server, history="false") as context:
        agent = NodeAgent(context, SystemClock(), heartbeats, build_runtime)
        assert agent.stalled_services() == ()
        await clock.advance(1000)
        assert agent.stalled_services() == ()
        heartbeats.register("relist", max_silent_seconds=180)  # the runtime answers
        names = [text.partition(" ")[0] for text in agent.stalled_services()]
        assert {"lease", "housekeeping", "status"} <= set(names)
        assert "relist" not in names


async def test_init_containers_do_not_count_as_time_that_a_pod_takes_to_start(
    tmp_path: Path, server: ApiServerThread, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "podstatus.status.startup_latency_tracker")
    annotations = {"simulate.podstatus.dev/slow": "run=1s"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "annotations": annotations},
        "spec": {
            "nodeName": "node",
            "initContainers": [
                {"name": "sidecar", "image": "i", "restartPolicy": "Always"},
                {"name": "slow", "image": "i"},
            ],
            "containers": [{"name": "c", "image": "i"}],
        },
    }

    async with a_node(tmp_path, server):
        path = "/api/v1/namespaces/default/pods"
        assert (await asyncio.to_thread(server.request, "POST", path, pod))[0] == 201
        await until(lambda: "pod started" in caplog.text)
    match = re.search(r"init_seconds=([0-9.]+)", caplog.text)
    assert match is not None
    assert 0.5 < float(match[1]) <= 1.0


class ForgetfulRuntime(SimulatedRuntime):
    """One that can say but now and then what its probes find."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.asked = 0

    async def probe_results(self) -> AsyncIterator[ProbeResult]:
        self.asked += 1
        if self.asked == 1:
            raise OSError("the pipe is broken")
        await asyncio.Event().wait()
        yield ProbeResult(uid="", container="", container_id="", probe="", success=True)  # type: ignore[arg-type]


async def test_probes_that_break_off_do_not_end_the_node(
    tmp_path: Path, server: ApiServerThread
) -> None:
    runtime = ForgetfulRuntime()
    async with a_node(tmp_path, server, runtime=lambda _: runtime) as task:
        await until(lambda: runtime.asked == 2 or task.done())
        assert not task.done()


async def test_a_port_that_is_taken_comes_with_a_cure_that_works(
    tmp_path: Path, server: ApiServerThread
) -> None:
    async def scene(healthz_port: str) -> None:
        async with a_node(tmp_path, server, healthz_port=healthz_port) as task:
            if task.done():
                await task

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(AgentError, match=r"pass another --healthz-port \(0 disables it\)"):
            await scene(str(port))
    await scene("0")


def test_what_the_end_takes_at_most_fits_into_the_time_it_has() -> None:
    drain = 1.5 * build_node.DRAIN_SECONDS
    moment = 0.5
    assert drain + apiserver_process.STOP_TIMEOUT_SECONDS + moment <= run_agent.STOP_SECONDS
