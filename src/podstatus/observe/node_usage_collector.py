"""Collect the usage of the nodes of a cluster, for their load.

    collector = NodeUsageCollector(HttpNodeUsage(client), names, method="metrics", clock=clock, …)
    tasks.create_task(collector.run())
    collector.usage("node-1")

A node that does not answer has a gap: nothing is assumed for it. A report counts once, from when it
was first seen, so that clocks of nodes do not matter.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from typing import Literal, Protocol

from podstatus.base.clock import Clock
from podstatus.base.failure_log import FailureLog
from podstatus.base.timeouts import run_with_timeout
from podstatus.kube.api_errors import ApiError, GoneError, UnavailableError
from podstatus.kube.objects.usage import NodeUsageReport
from podstatus.node.decide.measured_usage import MeasuredUsage, NodeUsageSample

logger = logging.getLogger(__name__)

UsageMethod = Literal["metrics", "summary"]
_PERIODS: Mapping[UsageMethod, float] = {"metrics": 15.0, "summary": 30.0}
"""Seconds between two rounds. metrics-server measures every 15 s by default, a kubelet every 10."""
_JITTER = 0.1
"""Random extension of a period, as a fraction, so that observers do not synchronize."""
MAX_GAP_SECONDS = 150.0
"""Longest time between two reports that counts as measured: some servers measure once a minute."""
MAX_CONCURRENT = 8
"""Nodes that are asked at the same time."""
_NODE_TIMEOUT_SECONDS = 5.0


class NodeUsageSource(Protocol):
    """Where the usage of nodes is read. Raises ApiError."""

    async def metrics(self) -> Mapping[str, NodeUsageReport]:
        """Return the reports of all nodes by name. Raises GoneError if there are none."""

    async def summary(self, node: str) -> NodeUsageReport:
        """Return the report of one node."""


class NodeUsageCollector:
    """The measured usage of all nodes. For one event loop."""

    def __init__(
        self,
        source: NodeUsageSource,
        nodes: Callable[[], Collection[str]],
        *,
        method: UsageMethod,
        clock: Clock,
        random: Callable[[], float],
        heartbeat: Callable[[], None],
    ) -> None:
        """`nodes` returns the names of the nodes that exist."""
        self._source = source
        self._nodes = nodes
        self._method = method
        self._clock = clock
        self._random = random
        self._heartbeat = heartbeat
        self._usage: dict[str, MeasuredUsage] = {}
        self._timestamps: dict[str, str] = {}
        self._is_missing = False
        """Whether the API server does not serve the metrics."""
        self._failures = FailureLog(logger, "reading the usage of nodes", expected=ApiError)

    def usage(self, node: str) -> MeasuredUsage:
        """Return what is known of a node; without a sample if that is nothing."""
        return self._usage.get(node, _UNKNOWN)

    async def run(self) -> None:
        """Read the usage of all nodes periodically, until cancelled."""
        while True:
            self._heartbeat()
            await self.collect_once()
            await self._clock.wait(_PERIODS[self._method] * (1 + _JITTER * self._random()))

    async def collect_once(self) -> None:
        """Read the usage of all nodes. Logs errors, does not raise them."""
        names = set(self._nodes())
        for gone in self._usage.keys() - names:
            del self._usage[gone], self._timestamps[gone]
        try:
            if self._method == "metrics":
                reports = await self._source.metrics()
                self._record({name: it for name, it in reports.items() if name in names})
            else:
                await self._collect_summaries(sorted(names))
        except GoneError as error:
            self._log_missing(error)
        except ApiError as error:
            self._failures.failed(error)
        else:
            self._is_missing = False
            self._failures.recovered()

    async def _collect_summaries(self, names: Collection[str]) -> None:
        """Raises the error of one node if no node could be read."""
        limit = asyncio.Semaphore(MAX_CONCURRENT)
        errors: list[ApiError] = []

        async def collect(name: str) -> None:
            async with limit:
                self._heartbeat()
                try:
                    self._record({name: await self._summary(name)})
                except ApiError as error:
                    logger.debug("cannot read the usage of a node: node=%s error=%s", name, error)
                    errors.append(error)

        async with asyncio.TaskGroup() as tasks:
            for name in names:
                tasks.create_task(collect(name))
        if errors and len(errors) == len(names):
            raise errors[0]

    async def _summary(self, name: str) -> NodeUsageReport:
        try:
            reading = self._source.summary(name)
            return await run_with_timeout(_NODE_TIMEOUT_SECONDS, self._clock, reading)
        except TimeoutError as error:
            raise UnavailableError(f"no response in {_NODE_TIMEOUT_SECONDS:g} s") from error

    def _record(self, reports: Mapping[str, NodeUsageReport]) -> None:
        now = self._clock.monotonic()
        for name, report in reports.items():
            is_same = report.timestamp and report.timestamp == self._timestamps.get(name)
            if is_same or not report.used:
                continue
            self._timestamps[name] = report.timestamp
            sample = NodeUsageSample(at=now, used=report.used, capacity=report.capacity)
            self._usage[name] = self.usage(name).add(sample)

    def _log_missing(self, error: GoneError) -> None:
        if not self._is_missing:
            logger.info("the usage of nodes is unknown, metrics are not served: error=%s", error)
        self._is_missing = True


_UNKNOWN = MeasuredUsage(max_gap_seconds=MAX_GAP_SECONDS)
