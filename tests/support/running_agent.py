"""A node agent or an observer in the test's own process."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from podstatus.agent.compose.kubelet_server import ensure_server_files
from podstatus.agent.daemon.root_dir import RootDir
from podstatus.agent.daemon.run_agent import AgentContext, ListenAddresses, RunnableAgent
from podstatus.agent.settings.load import load_settings
from podstatus.agent.settings.model import AgentSettings
from podstatus.base.system_time import wall_clock_ns
from podstatus.client import kubeconfig_config
from podstatus.testing.apiserver import ApiServerThread


class RunningAgent(NamedTuple):
    """The task of an agent, and its addresses once it serves."""

    task: "asyncio.Task[None]"
    serving: "asyncio.Future[ListenAddresses]"


def agent_context(settings: AgentSettings, root: RootDir, server: ApiServerThread) -> AgentContext:
    """What an agent on this API server is built from, without alert rules."""
    return AgentContext(
        settings=settings,
        root=root,
        access=kubeconfig_config(server.kubeconfig),
        server_files=ensure_server_files(settings, root.folder("pki"), wall_clock_ns()),
    )


@contextmanager
def node_context(
    root_dir: Path, server: ApiServerThread, **flags: str | None
) -> Iterator[AgentContext]:
    """What the agent of a Node `node` with the simulated runtime is built from."""
    given = {
        "root_dir": str(root_dir),
        "kubeconfig": str(server.kubeconfig),
        "runtime": "simulated",
        "hostname_override": "node",
        "port": "0",
        "healthz_port": "0",
    }
    settings = load_settings(given | flags, {}).settings
    with RootDir(settings.root_dir) as root:
        yield agent_context(settings, root, server)


@asynccontextmanager
async def running_agent(agent: RunnableAgent, seconds: float) -> AsyncIterator[RunningAgent]:
    """Run the agent; the body begins when it serves, or has ended, and has so many seconds."""
    serving = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(agent.run(serving.set_result))
    try:
        async with asyncio.timeout(seconds):
            await asyncio.wait({task, serving}, return_when=asyncio.FIRST_COMPLETED)
            yield RunningAgent(task, serving)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
