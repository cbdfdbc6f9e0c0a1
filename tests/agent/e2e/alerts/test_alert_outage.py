"""All that can go wrong with alerts at once, on a whole agent, for ten minutes.

A rule that fails for every pod, one that fails for a single pod, a webhook that accepts a request
and never answers, and an unreachable Alertmanager. Minutes are skipped: the agent's clock is moved
ahead, and all waits are ended.
"""

import asyncio
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from aiohttp import web

from podstatus.alerts.ports import AlertReader, DeliveryState
from podstatus.testing.apiserver import ApiServerThread, running_api_server
from tests.agent.e2e.alerting_node import AlertingNode, SkippingClock, shown, until
from tests.agent.e2e.alerts.pod_checks import is_ready, is_running
from tests.support.webhook_server import WebServer, web_server

pytestmark = pytest.mark.slow

MINUTES = 10
SECONDS = 240
SHORT = 3
"""Alerts of a minute that may be over before the webhook that hangs can have heard of them."""
HEARD = [f"heard-{minute}" for minute in range(MINUTES)]
"""Pods whose alerts it may have heard of."""
OTHERS = ["short", *HEARD]
FAILING = {"Broken": 3 + len(OTHERS), "Picky": 1}
"""Of how many pods rules fail."""
RULES = """
# The server's clock is not set, ours is.
disable: [NodeClockSkewed, NodeLeaseLate, ApiServerUnreachable, StatusSyncLagging]
rules:
- name: Broken
  expr: pod.phase == "Running" && pod.containers.filter(c, c.kind == "sidecar")[0].ready == false
- name: Picky
  expr: '"n" in pod.labels && int(pod.labels.n) > 3'
  actions: [{{webhook: {{url: {good}}}}}]
- name: Hung
  expr: '"bad" in pod.labels && pod.labels.bad == "yes"'
  actions: [{{webhook: {{url: {hung}, timeout: 1s}}}}]
- name: Away
  expr: '"bad" in pod.labels && pod.labels.bad == "yes"'
  actions: [{{alertmanager: {{url: {away}}}}}]
- name: Good
  expr: '"bad" in pod.labels && pod.labels.bad == "yes"'
  actions: [{{webhook: {{url: {good}}}}}, event]
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ApiServerThread]:
    with running_api_server(tmp_path / "server") as running:
        yield running


def a_free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def received(hook: WebServer, rule: str) -> list[str]:
    """The notifications of a rule that a webhook received."""
    found = [post.json() for post in hook.posts]
    return [f"{it['subject']['name']} {it['state']}" for it in found if it["rule"] == rule]


def received_by_manager(manager: WebServer) -> set[str]:
    """The subjects that an Alertmanager received alerts about."""
    return {alert["labels"]["pod"] for post in manager.posts for alert in post.json()}


def agent_tasks() -> int:
    """Tasks of this loop that are not of the servers of this test."""
    names = [getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks()]
    return sum("RequestHandler" not in name for name in names)


class Outage:
    """A node on which all of it goes wrong; the pod `stays` is bad all the time."""

    def __init__(self, node: AlertingNode, alerts: AlertReader, good: WebServer) -> None:
        self.node = node
        self.alerts = alerts
        self._good = good
        self.begun = 0
        """Alerts of each rule that have begun and ended."""

    async def begin(self) -> None:
        await self.node.create("stays", bad="yes")
        await self.node.create("big", n="5")
        await self.node.create("odd", n="five")
        for name in OTHERS:
            await self.node.create(name, bad="no")
        for name in ("stays", "big", "odd", *OTHERS):
            await until(lambda name=name: is_running(self.node, name))  # type: ignore[misc]
        await until(lambda: "stays firing" in received(self._good, "Good"), self.describe)
        await until(lambda: received(self._good, "Picky") == ["big firing"], self.describe)
        await until(lambda: self.failing() == FAILING, self.describe)

    async def flip(self, name: str, hung: WebServer | None = None) -> None:
        """An alert of each rule begins, and ends. The good receiver hears of both; one that hangs
        may have heard of the beginning, if it is given."""
        self.begun += 1
        before = self.heard_of(name)
        await self.node.label(name, bad="yes")
        await until(lambda: self.heard_of(name) == [*before, "firing"], self.describe)
        if hung is not None:
            await until(lambda: f"{name} firing" in received(hung, "Hung"), self.describe)
        await self.node.label(name, bad="no")
        await until(lambda: self.heard_of(name) == [*before, "firing", "resolved"], self.describe)

    def heard_of(self, name: str) -> list[str]:
        heard = [it.split() for it in received(self._good, "Good")]
        return [state for about, state in heard if about == name]

    def failing(self) -> dict[str, int]:
        return {it.name: it.failing for it in self.alerts.rules() if it.failing}

    def problems(self) -> dict[str, str]:
        return {it.name: it.problem for it in self.alerts.rules() if it.problem}

    def receivers(self) -> dict[str, DeliveryState]:
        """By the rules that tell them."""
        return {"+".join(it.rules): it for it in self.alerts.deliveries()}

    def firing(self) -> int:
        return len([it for it in self.alerts.alerts().values() if it.state == "firing"])

    def rows(self) -> int:
        """Alerts on the disk."""
        file = f"file:{self.node.folder}/root/alerts.db?mode=ro"
        with closing(sqlite3.connect(file, uri=True)) as database:
            return int(database.execute("SELECT count(*) FROM alerts").fetchone()[0])

    def is_over(self) -> bool:
        """True if everything is delivered and no delivery is pending."""
        states = self.receivers().values()
        return not any(it.problem or it.waiting for it in states) and self.rows() == self.firing()

    def describe(self) -> object:
        living = [it for it in shown(self.alerts) if not it.endswith("resolved")]
        return living, self.receivers(), self.failing(), self.rows()


def test_ten_minutes_of_all_that_can_go_wrong_at_once(
    tmp_path: Path, server: ApiServerThread
) -> None:
    async def scene() -> None:
        clock, port = SkippingClock(), a_free_port()
        node = AlertingNode(tmp_path, server, clock)
        answers = asyncio.Event()

        async def hang(_: web.Request) -> web.Response:
            await answers.wait()
            return web.Response()

        async with web_server() as good, web_server() as hung:
            hung.answers = [hang] * 1000
            rules = RULES.format(good=good.url, hung=hung.url, away=f"http://127.0.0.1:{port}")
            async with node.running(rules, seconds=SECONDS) as alerts:
                outage = Outage(node, alerts, good)
                await outage.begin()
                tasks = agent_tasks()
                for minutes, name in enumerate(HEARD, 1):
                    await outage.flip(name, hung)
                    for _ in range(SHORT):
                        await outage.flip("short")
                    await until(partial(is_bounded, outage, minutes), outage.describe)
                    # There are tries under way, but none waits for each alert.
                    assert agent_tasks() < tasks + 8, asyncio.all_tasks()
                    clock.skip(60)
                answers.set()
                async with web_server(port=port) as manager:
                    await until(partial(is_over_soon, outage, clock), outage.describe)
                    # Alerts that fired and resolved in between are not sent.
                    assert received_by_manager(manager) == {"stays"}
                ends = [it for it in received(hung, "Hung") if it.endswith("resolved")]
                assert {f"{name} resolved" for name in HEARD} <= set(ends)
                await is_unharmed(outage)

    def is_bounded(outage: Outage, minutes: int) -> bool:
        away, hung, good = (outage.receivers()[rule] for rule in ("Away", "Hung", "Picky+Good"))
        assert outage.failing() == FAILING
        assert not away.dropped + hung.dropped + good.dropped
        return (
            "cannot connect to " in away.problem
            and "no response from " in hung.problem
            and not good.problem
            # An unreachable receiver gets only what still fires when it is back; one that may have
            # got a firing alert gets the resolved one, once per pod.
            and (away.waiting, good.waiting) == (1, 0)
            and 1 + minutes <= hung.waiting <= 2 + minutes
            and outage.rows() == outage.firing() + hung.waiting - 1
        )

    async def is_over_soon(outage: Outage, clock: SkippingClock) -> bool:
        """What has failed for so long is tried again within five minutes."""
        clock.skip(60)
        await asyncio.sleep(0.5)
        return outage.is_over()

    async def is_unharmed(outage: Outage) -> None:
        node = outage.node
        assert set(outage.problems()) == {"Broken", "Picky"}
        assert "pod default/odd: " in outage.problems()["Picky"]
        await until(lambda: not node.unhealthy(), node.unhealthy)
        await node.create("after", bad="no")
        await until(lambda: is_running(node, "after"))
        await until(lambda: is_ready(node))
        await outage.flip("after")

    asyncio.run(scene())
