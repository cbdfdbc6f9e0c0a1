"""A whole node in this process that evaluates alert rules, on an API server in memory."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import structs

from podstatus.agent.compose.agent import NodeAgent
from podstatus.agent.compose.alert_rules import load_alert_rules
from podstatus.alerts.evaluator.budgeted_evaluator import BudgetedEvaluator
from podstatus.alerts.ports import AlertReader
from podstatus.base.clock import Clock
from podstatus.base.service_heartbeats import Heartbeats
from podstatus.base.system_clock import SystemClock
from podstatus.runtime.simulated.simulated_runtime import SimulatedRuntime
from podstatus.testing.apiserver import ApiServerThread
from tests.support.running_agent import node_context, running_agent

SECONDS = 90
NODE = "node"
PODS = "/api/v1/namespaces/default/pods"
Document = dict[str, Any]


class SetClock(SystemClock):
    """The clock of this machine, with a settable offset."""

    ahead = 0

    def now(self) -> int:
        return super().now() + self.ahead

    def set_ahead(self, seconds: int) -> None:
        self.ahead = seconds * 1_000_000_000


class SkippingClock(SystemClock):
    """A clock that can skip time; waits that end in the skipped time return at once."""

    def __init__(self) -> None:
        self._skipped_ns = 0
        self._skipped = asyncio.Event()

    def now(self) -> int:
        return super().now() + self._skipped_ns

    def monotonic(self) -> int:
        return super().monotonic() + self._skipped_ns

    def skip(self, seconds: int) -> None:
        self._skipped_ns += seconds * 1_000_000_000
        skipped, self._skipped = self._skipped, asyncio.Event()
        skipped.set()

    async def wait(self, seconds: float) -> None:
        due = self.monotonic() + round(seconds * 1e9)
        while (left := due - self.monotonic()) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left / 1e9):
                    await self._skipped.wait()


class AlertingNode:
    """The runtime and the API server outlive the agent, which may be started again."""

    def __init__(
        self, folder: Path, server: ApiServerThread, clock: Clock | None = None, **settings: str
    ) -> None:
        self.folder = folder
        self.server = server
        self.clock = clock or SystemClock()
        self.settings = settings
        self.runtime = SimulatedRuntime(self.clock)
        self.heartbeats: Heartbeats | None = None
        self.is_stalled: Callable[[], bool] = bool
        """Whether a service of the running agent has missed its heartbeat."""
        self.agent: NodeAgent | None = None

    @asynccontextmanager
    async def running(
        self, rules: str | None, *, seconds: float = SECONDS
    ) -> AsyncIterator[AlertReader]:
        """With these rules, in YAML; None: without any, as `--no-alerts` has it."""
        file = self.folder / "rules.yaml"
        file.write_text(rules or "")
        flags = {"node_status_update_frequency": "1s", **self.settings}
        with (
            node_context(self.folder / "root", self.server, **flags) as context,
            BudgetedEvaluator() as evaluator,
        ):
            loaded = None if rules is None else load_alert_rules([file], evaluator)
            alerting = structs.replace(context, alert_rules=loaded)
            heartbeats = self.heartbeats or Heartbeats(self.clock)
            self.is_stalled = lambda: bool(heartbeats.stalled())
            agent = NodeAgent(alerting, self.clock, heartbeats, lambda _: self.runtime)
            self.agent = agent
            async with running_agent(agent, seconds) as running:
                assert not running.task.done(), running.task.exception()
                yield agent.alerts or NoAlerts()

    def unhealthy(self) -> dict[str, str]:
        """The checks of `/healthz` that fail, and why."""
        assert self.agent is not None
        found = {name: check() for name, check in self.agent.checks().items()}
        return {name: problem for name, problem in found.items() if problem is not None}

    async def create(self, name: str, **labels: str) -> None:
        """A pod of one container that runs."""
        await self.ask("POST", PODS, a_pod(name, **labels))

    async def label(self, name: str, **labels: str) -> None:
        await self.ask("PATCH", f"{PODS}/{name}", {"metadata": {"labels": labels}})

    async def ask(self, method: str, path: str, body: object = None) -> None:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        code, response = await asyncio.to_thread(self.server.request, method, path, body, kind)
        assert code < 300, response

    async def pod(self, name: str) -> Document | None:
        return await asyncio.to_thread(self.server.get_object, "pods", name, "default")

    async def node(self) -> Document:
        """Its Node; one without anything if it is not registered yet."""
        found = await asyncio.to_thread(self.server.get_object, "nodes", NODE)
        return found or {"spec": {}, "status": {}}

    async def event_messages(self, *reasons: str) -> list[str]:
        """Events with these reasons, as `pod/web AlertFiring Bad: …`, in the order of names."""
        events = await asyncio.to_thread(self.server.list_objects, "events")
        return sorted(
            f"{_about(event)} {event['reason']} {event['message']}"
            for event in events
            if event["reason"] in reasons
        )

    async def taints(self) -> list[Document]:
        return list((await self.node())["spec"].get("taints", []))

    async def conditions(self) -> dict[str, Document]:
        return {it["type"]: it for it in (await self.node())["status"].get("conditions", [])}

    async def containers(self) -> dict[str, tuple[int, str]]:
        """By the name of a pod, how many attempts the runtime has, and the newest of them."""
        pods = await self.runtime.list_pods()
        return {
            it.name: (len(it.facts.containers), it.facts.containers[0].id)
            for it in pods
            if it.facts.containers
        }


class NoAlerts:
    """Of a node that asks no rules."""

    def alerts(self) -> dict[Any, Any]:
        return {}

    def rules(self) -> list[Any]:
        return []

    def deliveries(self) -> list[Any]:
        return []


def _about(event: Document) -> str:
    about = event["involvedObject"]
    return f"{about['kind'].lower()}/{about['name']}"


def a_pod(name: str, **labels: str) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {"nodeName": NODE, "containers": [{"name": "app", "image": "i"}]},
    }


def shown(alerts: AlertReader) -> list[str]:
    """The alerts that there are."""
    found = alerts.alerts().values()
    return sorted(f"{it.rule} {it.subject.name} {it.state}" for it in found)


async def is_ready(node: AlertingNode) -> bool:
    return (await node.conditions()).get("Ready", {}).get("status") == "True"


async def is_running(node: AlertingNode, name: str) -> bool:
    pod = await node.pod(name)
    return pod is not None and pod["status"].get("phase") == "Running"


async def until(holds: Callable[[], Any], describe: Callable[[], object] = str) -> None:
    """Come back when it is so: a function, or one that has to be awaited."""
    clock = SystemClock()
    try:
        while True:
            now = holds()
            if await now if asyncio.iscoroutine(now) else now:
                return
            await clock.wait(0.02)
    except asyncio.CancelledError:
        raise AssertionError(describe()) from None
