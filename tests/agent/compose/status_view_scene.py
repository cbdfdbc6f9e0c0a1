"""A whole node in this process, seen through its status view."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from podstatus.agent.compose.agent import build_node_agent
from podstatus.base.system_clock import SystemClock
from podstatus.observe.ports import StatusView
from podstatus.observe.summary.pod import PodSummary
from podstatus.testing.apiserver import ApiServerThread
from tests.support.running_agent import node_context, running_agent

SECONDS = 90


@asynccontextmanager
async def a_node(folder: Path, server: ApiServerThread, **flags: str) -> AsyncIterator[StatusView]:
    with node_context(folder / "root", server, **flags) as context:
        agent = build_node_agent(context)
        async with running_agent(agent, SECONDS) as running:
            yield agent.status_view
            assert not running.task.done()


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await SystemClock().wait(0.02)


def find(view: StatusView, name: str) -> PodSummary | None:
    return next((p for p in view.snapshot_cache.pods().values() if p.name == name), None)


def is_ready(view: StatusView, name: str) -> bool:
    pod = find(view, name)
    return pod is not None and pod.ready
