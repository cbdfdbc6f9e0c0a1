"""An observer in the test's own process, on an API server in memory."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec import structs

from podstatus.agent.compose.alert_rules import load_alert_rules
from podstatus.agent.daemon.root_dir import RootDir
from podstatus.agent.observer.cluster_view import ObserverScope
from podstatus.agent.observer.observer import ClusterObserver, build_observer
from podstatus.agent.observer.settings import load_observe_settings
from podstatus.alerts.evaluator.budgeted_evaluator import BudgetedEvaluator
from podstatus.base.system_clock import SystemClock
from podstatus.testing.apiserver import ApiServerThread
from tests.support.running_agent import agent_context, running_agent

SECONDS = 90


@asynccontextmanager
async def observing(
    folder: Path,
    server: ApiServerThread,
    observed: ObserverScope | None = None,
    *,
    rules: str | None = None,
    **options: str,
) -> AsyncIterator[ClusterObserver]:
    """`rules`: a rule file beside the default rules; None: no alerts."""
    flags: dict[str, str | None] = {
        "root_dir": str(folder / "root"),
        "kubeconfig": str(server.kubeconfig),
        "port": "0",
        **options,
    }
    given = load_observe_settings(flags, {}, {})
    settings = given.settings
    with ExitStack() as stack:
        root = stack.enter_context(RootDir(settings.root_dir))
        context = agent_context(settings, root, server)
        if rules is not None:
            file = folder / "rules.yaml"
            file.write_text(rules)
            evaluator = stack.enter_context(BudgetedEvaluator())
            loaded = await asyncio.to_thread(load_alert_rules, [file], evaluator)
            context = structs.replace(context, alert_rules=loaded)
        observer = build_observer(context, observed or ObserverScope(), given.observer)
        async with running_agent(observer, SECONDS) as running:
            yield observer
            assert not running.task.done()


async def until(holds: Callable[[], object]) -> None:
    while not holds():
        await SystemClock().wait(0.02)


def create(server: ApiServerThread, path: str, body: dict[str, Any]) -> str:
    code, answer = server.request("POST", path, body)
    assert code == 201, answer
    name: str = body["metadata"]["name"]
    return name
