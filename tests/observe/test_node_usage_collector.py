"""The usage of nodes, collected in virtual time from two APIs that fail."""

from collections.abc import Mapping

import pytest

from podstatus.base.service_heartbeats import Heartbeats
from podstatus.kube.api_errors import DeniedError, GoneError, UnavailableError
from podstatus.kube.objects.usage import NodeUsageReport
from podstatus.observe.node_usage_collector import (
    MAX_CONCURRENT,
    NodeUsageCollector,
    UsageMethod,
)
from podstatus.testing.clock import FakeClock
from tests.support.loops import in_background


class FakeNodes:
    """Nodes that measure every 15 s, and an API server between them and the observer."""

    def __init__(self, clock: FakeClock, *names: str) -> None:
        self.clock = clock
        self.names = list(names)
        self.cores = dict.fromkeys(names, 1.0)
        self.silent: set[str] = set()
        self.hanging: set[str] = set()
        self.error: Exception | None = None
        self.asked = 0
        self.in_flight = self.max_in_flight = 0

    def report(self, node: str) -> NodeUsageReport:
        timestamp = str(self.clock.monotonic() // (15 * 10**9))
        return NodeUsageReport(timestamp=timestamp, used={"cpu": self.cores[node]})

    async def metrics(self) -> Mapping[str, NodeUsageReport]:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return {name: self.report(name) for name in self.names if name not in self.silent}

    async def summary(self, node: str) -> NodeUsageReport:
        self.asked += 1
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            await self.clock.wait(1000 if node in self.hanging else 0.1)
        finally:
            self.in_flight -= 1
        if self.error is not None or node in self.silent:
            raise self.error or UnavailableError("no route to the node")
        return self.report(node)

    def collector(self, method: UsageMethod) -> NodeUsageCollector:
        return NodeUsageCollector(
            self,
            lambda: self.names,
            method=method,
            clock=self.clock,
            random=lambda: 0.5,
            heartbeat=Heartbeats(self.clock).register("usage", max_silent_seconds=60),
        )


def cpu(made: NodeUsageCollector, node: str, clock: FakeClock) -> float | None:
    sample = made.usage(node).newest(clock.monotonic())
    return None if sample is None else sample.used["cpu"]


@pytest.mark.parametrize("method", ["metrics", "summary"])
async def test_the_usage_of_all_nodes_is_known_with_its_averages(method: UsageMethod) -> None:
    clock = FakeClock()
    nodes = FakeNodes(clock, "a", "b")
    made = nodes.collector(method)
    async with in_background(made.run()):
        await clock.advance(600)
        nodes.cores["b"] = 3.0
        await clock.advance(60)
        assert (cpu(made, "a", clock), cpu(made, "b", clock)) == (1, 3)
        averages = made.usage("b").averages_at("cpu", clock.monotonic())
        amounts = [averages[window].amount or 0.0 for window in ("1m", "5m", "15m")]
        assert 1 < amounts[2] < amounts[1] < amounts[0] < 3


@pytest.mark.parametrize("method", ["metrics", "summary"])
async def test_a_node_that_does_not_answer_has_a_gap_and_the_others_have_none(
    method: UsageMethod,
) -> None:
    clock = FakeClock()
    nodes = FakeNodes(clock, "a", "b")
    made = nodes.collector(method)
    async with in_background(made.run()):
        await clock.advance(600)
        nodes.silent = {"b"}
        await clock.advance(100)
        assert (cpu(made, "a", clock), cpu(made, "b", clock)) == (1, None)
        nodes.silent = set()
        await clock.advance(40)
        assert cpu(made, "b", clock) == 1
        nodes.names.remove("a")
        await clock.advance(40)
        assert made.usage("a").sample is None


async def test_the_same_report_counts_once() -> None:
    clock = FakeClock()
    nodes = FakeNodes(clock, "a")
    made = nodes.collector("metrics")
    await made.collect_once()
    first = made.usage("a")
    await made.collect_once()
    assert made.usage("a") is first


async def test_few_nodes_are_asked_at_a_time_and_one_that_hangs_delays_no_other() -> None:
    clock = FakeClock()
    nodes = FakeNodes(clock, *(f"n{number}" for number in range(40)))
    nodes.hanging = {"n0", "n7"}
    made = nodes.collector("summary")
    async with in_background(made.run()):
        await clock.advance(5.5)
        known = [name for name in nodes.names if cpu(made, name, clock)]
        assert len(known) == 38
        assert nodes.max_in_flight == MAX_CONCURRENT
        assert nodes.in_flight == 0


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (GoneError("the server could not find it"), "INFO"),
        (DeniedError("forbidden"), "WARNING"),
        (UnavailableError("no answer"), "WARNING"),
    ],
)
async def test_an_api_that_is_not_there_is_logged_once_and_asked_again(
    error: Exception, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    clock = FakeClock()
    nodes = FakeNodes(clock, "a")
    nodes.error = error
    made = nodes.collector("metrics")
    async with in_background(made.run()):
        await clock.advance(120)
        assert [record.levelname for record in caplog.records] == [level]
        nodes.error = None
        await clock.advance(20)
        assert cpu(made, "a", clock) == 1
