"""A stalled service of the agent is named by its health endpoint and by the Node."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from podstatus.agent.compose.agent import NodeAgent
from podstatus.base.system_clock import SystemClock
from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.port import RuntimePod
from podstatus.runtime.simulated.simulated_runtime import SimulatedRuntime
from podstatus.testing.apiserver import ApiServerThread, running_api_server
from tests.agent.e2e.alerting_node import AlertingNode, SetClock
from tests.agent.e2e.faults.heartbeats import ImpatientHeartbeats
from tests.support.processes.agent_process import (
    NODE,
    SECONDS,
    Cluster,
    condition,
    get_plain,
    until,
)
from tests.support.running_agent import node_context, running_agent


class HangingRuntime(SimulatedRuntime):
    """A runtime that can be paused."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.answers = asyncio.Event()
        self.answers.set()

    async def list_pods(self, uid: PodUID | None = None) -> Sequence[RuntimePod]:
        await self.answers.wait()
        return await super().list_pods(uid)


@asynccontextmanager
async def running_node(
    folder: Path, server: ApiServerThread, runtime: HangingRuntime
) -> AsyncIterator[str]:
    """A node in this process; the address of its health."""
    flags = {"hostname_override": NODE, "node_status_update_frequency": "200ms"}
    with node_context(folder, server, healthz_port=None, **flags) as context:
        clock, heartbeats = SystemClock(), ImpatientHeartbeats("relist")
        node = NodeAgent(context, clock, heartbeats, lambda _: runtime)
        async with running_agent(node, SECONDS) as running:
            yield f"{running.serving.result().health}/healthz"


def ready_condition(cluster: Cluster, status: str) -> dict[str, str] | None:
    """The Ready condition of the node, if it has this status."""
    ready = condition(cluster.node() or {}, "Ready")
    return ready if ready.get("status") == status else None


async def test_a_runtime_that_hangs_makes_the_node_not_ready_by_name(tmp_path: Path) -> None:
    async def wait_for(cluster: Cluster, status: str) -> dict[str, str]:
        return await asyncio.to_thread(
            until, lambda: ready_condition(cluster, status), cluster.node
        )

    async def run(server: ApiServerThread) -> None:
        cluster, runtime = Cluster(server), HangingRuntime()
        async with running_node(tmp_path / "root", server, runtime) as health:
            await wait_for(cluster, "True")
            assert await asyncio.to_thread(get_plain, f"{health}/relist") == (200, "ok")
            runtime.answers.clear()
            ready = await wait_for(cluster, "False")
            assert ready["reason"] == "KubeletNotReady"
            assert ready["message"].startswith("relist is not healthy: relist was last active ")
            assert ready["message"].endswith("; threshold is 5 s")
            for path, code in ((f"{health}/relist", 500), (health, 500), (f"{health}/lease", 200)):
                answered, text = await asyncio.to_thread(get_plain, path)
                assert answered == code, text
                assert ("relist was last active" in text) == (code == 500)
            runtime.answers.set()
            await wait_for(cluster, "True")
            assert await asyncio.to_thread(get_plain, health) == (200, "ok")
            for reason in ("NodeNotReady", "NodeReady"):
                await asyncio.to_thread(cluster.wait_for_event, reason, NODE)

    with running_api_server(tmp_path / "server") as server:
        await run(server)


async def test_a_clock_that_is_set_ahead_makes_no_service_silent(tmp_path: Path) -> None:
    with running_api_server(tmp_path / "server") as server:
        clock = SetClock()
        node = AlertingNode(tmp_path, server, clock)
        async with node.running(None):
            clock.set_ahead(3600)
            assert not node.is_stalled()
