"""Reading the stats of many nodes: bounded, shared, and without waiting for those that hang."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.resource_metrics.decide.node_stats import NodeStats
from podstatus.apiserver.resource_metrics.node_stats_cache import (
    FRESH_SECONDS,
    MAX_IN_FLIGHT,
    NODE_SECONDS,
    SILENT_SECONDS,
    TOTAL_SECONDS,
    NodeStatsCache,
)
from podstatus.testing.clock import FakeClock

AT = "2024-01-31T09:30:00Z"


class FakeNodes:
    """Nodes that answer after a while, hang, or fail."""

    def __init__(self, clock: FakeClock, *, seconds: float = 0.1) -> None:
        self._clock = clock
        self._seconds = seconds
        self.hung: set[str] = set()
        self.failing: set[str] = set()
        self.asked: Counter[str] = Counter()
        self.in_flight = 0
        self.max_in_flight = 0

    async def read(self, node: dict[str, Any]) -> bytes:
        name = node["metadata"]["name"]
        self.asked[name] += 1
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            if name in self.hung:
                await asyncio.Event().wait()
            await self._clock.wait(self._seconds)
            if name in self.failing:
                raise StatusError(500, "", "connection refused")
        finally:
            self.in_flight -= 1
        cpu = {"time": AT, "usageNanoCores": self.asked[name]}
        return json.dumps({"node": {"cpu": cpu, "memory": {"workingSetBytes": 1}}}).encode()


class Scene:
    """A cache of nodes, and requests of clients to it."""

    def __init__(self, seconds: float = 0.1) -> None:
        self.clock = FakeClock()
        self.nodes = FakeNodes(self.clock, seconds=seconds)
        self._cache = NodeStatsCache(self.nodes.read, self.clock)

    def start(self, names: Iterable[str]) -> "asyncio.Task[dict[str, NodeStats]]":
        documents = {name: {"metadata": {"name": name}} for name in names}
        return asyncio.create_task(
            self._cache.collect({name: lambda it=it: it for name, it in documents.items()})  # type: ignore[misc]
        )

    async def collect(self, *names: str, within: float = 1.0) -> dict[str, int]:
        """Return the CPU of each node, which is the number of the reading."""
        return await self.finish(self.start(names), within)

    async def finish(
        self, task: "asyncio.Task[dict[str, NodeStats]]", within: float
    ) -> dict[str, int]:
        await self.clock.advance(within)
        assert task.done()
        collected = task.result()
        return {name: it.node.cpu_nanocores for name, it in collected.items() if it.node}


async def test_nothing_is_read_without_a_request() -> None:
    scene = Scene()
    await scene.clock.advance(3600)
    assert not scene.nodes.asked


async def test_stats_are_retained_for_seconds() -> None:
    scene = Scene()
    assert await scene.collect("a") == {"a": 1}
    await scene.clock.advance(FRESH_SECONDS - 2)
    assert await scene.collect("a", "b") == {"a": 1, "b": 1}
    await scene.clock.advance(2)
    assert await scene.collect("a") == {"a": 2}


async def test_many_nodes_are_read_with_few_requests_in_flight() -> None:
    scene = Scene()
    names = [f"n{number}" for number in range(200)]
    both = [scene.start(names), scene.start(reversed(names))]
    for task in both:
        assert (await scene.finish(task, within=2.0)).keys() == set(names)
    assert scene.nodes.max_in_flight == MAX_IN_FLIGHT


async def test_concurrent_requests_share_what_is_read() -> None:
    scene = Scene()
    names = [f"n{number}" for number in range(100)]
    tasks = [scene.start(names) for _ in range(10)]
    for task in tasks:
        assert len(await scene.finish(task, within=3.0)) == 100
    assert scene.nodes.asked.total() <= 100 + MAX_IN_FLIGHT


async def test_a_node_that_hangs_is_a_gap_and_delays_the_others_by_its_timeout_at_most() -> None:
    scene = Scene()
    scene.nodes.hung = {"hung"}
    task = scene.start(["hung", *(f"n{number}" for number in range(100))])
    await scene.clock.advance(NODE_SECONDS - 0.1)
    assert len(scene.nodes.asked) == 101
    assert not task.done()
    collected = await scene.finish(task, within=0.2)
    assert len(collected) == 100
    assert "hung" not in collected
    assert scene.nodes.in_flight == 0


async def test_a_node_that_hangs_is_not_asked_again_for_a_while() -> None:
    scene = Scene()
    scene.nodes.hung = {"hung"}
    await scene.collect("hung", within=NODE_SECONDS + 1)
    assert await scene.collect("hung", within=0.0) == {}
    assert scene.nodes.asked["hung"] == 1
    scene.nodes.hung.clear()
    await scene.clock.advance(SILENT_SECONDS)
    assert await scene.collect("hung") == {"hung": 2}


async def test_a_node_that_fails_is_asked_by_the_next_request() -> None:
    scene = Scene()
    scene.nodes.failing = {"bad"}
    assert await scene.collect("bad", "good") == {"good": 1}
    scene.nodes.failing.clear()
    assert await scene.collect("bad", "good") == {"bad": 2, "good": 1}


async def test_a_cluster_that_hangs_costs_a_request_no_more_than_its_total_time() -> None:
    scene = Scene()
    scene.nodes.hung = {f"hung{number}" for number in range(1000)}
    collected = await scene.collect("good", *sorted(scene.nodes.hung), within=TOTAL_SECONDS + 0.1)
    assert collected == {"good": 1}
    assert scene.nodes.in_flight == 0
    # The slots are free again.
    assert await scene.collect("other") == {"other": 1}


async def test_what_expires_while_others_are_read_is_not_lost() -> None:
    scene = Scene()
    scene.nodes.hung = {f"hung{number}" for number in range(2 * MAX_IN_FLIGHT)}
    task = scene.start(["good", *scene.nodes.hung])
    await scene.clock.advance(FRESH_SECONDS + 0.5)
    other = scene.start(["good"])
    assert await scene.finish(task, within=TOTAL_SECONDS) == {"good": 1}
    assert await scene.finish(other, within=0.0) == {"good": 2}


async def test_an_abandoned_request_frees_its_slots() -> None:
    scene = Scene()
    scene.nodes.hung = {f"hung{number}" for number in range(1000)}
    task = scene.start(scene.nodes.hung)
    await scene.clock.advance(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await scene.collect("good") == {"good": 1}


async def test_nodes_that_cannot_be_read_are_logged_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = Scene()
    scene.nodes.failing = {"x", "y"}
    for _ in range(3):
        await scene.collect("x", "y")
    assert [record.getMessage() for record in caplog.records] == [
        "cannot read the usage of nodes: count=2 first=x error=connection refused"
    ]
    await scene.clock.advance(60)
    await scene.collect("x")
    assert len(caplog.records) == 2
