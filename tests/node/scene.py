"""A node in virtual time, with an in-memory API server and fakes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from podstatus.kube.objects.node import Node, NodeCondition, NodeSystemInfo
from podstatus.kube.objects.usage import Usage
from podstatus.kube.scalars.quantity import Quantity
from podstatus.node.compose import NodeCallbacks, NodeServices, build_node
from podstatus.node.decide.conditions import AlertCondition
from podstatus.node.decide.readings import CpuTimes, DiskReading, MachineReading, UsageSnapshot
from podstatus.node.facts_collector import FactSources
from podstatus.node.node_cache import NodeCache
from podstatus.node.ports import NodeApi
from podstatus.node.settings import NodeSettings
from podstatus.testing.clock import FakeClock
from tests.support.in_memory_node_api import InMemoryNodeApi
from tests.support.pod_services import ignore

GI = 1024**3
DISK = DiskReading(
    total_bytes=100 * GI,
    used_bytes=40 * GI,
    available_bytes=50 * GI,
    inodes=1_000_000,
    inodes_free=900_000,
)
MACHINE = MachineReading(
    cores=4,
    cpu=CpuTimes(100.0, 400.0),
    memory_bytes=8 * GI,
    memory_available_bytes=6 * GI,
    pids=300,
    max_pids=32_768,
    load=(0.5, 0.4, 0.3),
    disk=DISK,
)
RESERVED = {"memory": Quantity("100Mi"), "ephemeral-storage": Quantity("10Gi")}
"""What eviction thresholds keep free."""
INFO = NodeSystemInfo(
    machine_id="0123456789abcdef",
    system_uuid="0123456789abcdef",
    boot_id="boot-1",
    kernel_version="6.1.0",
    os_image="Debian GNU/Linux 13 (trixie)",
    container_runtime_version="simulated://0.1.0",
    kubelet_version="v1.36.4+podstatus.0.1.0",
    operating_system="linux",
    architecture="amd64",
)
SETTINGS = NodeSettings(
    name="node-c", node_ips=("10.0.0.7",), port=10250, capacity={"cpu": Quantity("2")}
)


class FakeEvents:
    """Records events."""

    def __init__(self) -> None:
        self.recorded: list[tuple[str, str, str]] = []

    def normal(self, reason: str, message: str) -> None:
        self.recorded.append(("Normal", reason, message))

    def warn(self, reason: str, message: str) -> None:
        self.recorded.append(("Warning", reason, message))

    def reasons(self) -> list[str]:
        """The events since the last call."""
        recorded, self.recorded = self.recorded, []
        return [reason for _, reason, _ in recorded]


class NodeScene:
    """The node services and their fakes."""

    def __init__(
        self,
        settings: NodeSettings = SETTINGS,
        *,
        api: NodeApi | None = None,
        info: NodeSystemInfo = INFO,
        chance: float = 0.5,
    ) -> None:
        self.settings = settings
        self.server = InMemoryNodeApi()
        self.clock = FakeClock()
        self.events = FakeEvents()
        self.problems: tuple[str, ...] = ()
        self.machine: MachineReading | None = MACHINE
        self.recoveries = 0
        self.stated: tuple[AlertCondition, ...] = ()
        self.pressures: tuple[str, ...] = ()
        self.own_node = NodeCache(Node())
        self.services: NodeServices = build_node(
            settings,
            FactSources(
                info=info,
                usage=self.snapshot,
                problems=lambda: self.problems,
                port=int,
                alert_conditions=lambda: self.stated,
                pressures=lambda: self.pressures,
                reserve=lambda _: RESERVED,
            ),
            api=api or self.server,
            events=self.events,
            clock=self.clock,
            node_cache=self.own_node,
            callbacks=NodeCallbacks(ignore, ignore, self._recovered),
            random=lambda: chance,
        )
        self.status = self.services.status
        self.lease = self.services.lease

    def snapshot(self) -> UsageSnapshot | None:
        if self.machine is None:
            return None
        at = self.clock.now()
        return UsageSnapshot(at=at, machine=self.machine, node=Usage(at=at), pods={})

    def _recovered(self) -> None:
        self.recoveries += 1

    @property
    def node(self) -> Node:
        """The node as stored by the server."""
        return self.server.nodes[self.settings.name]

    def condition(self, kind: str) -> NodeCondition:
        found = {it.type: it for it in self.node.status.conditions or ()}
        return found[kind]

    def run_short_of_memory(self) -> None:
        self.pressures = ("MemoryPressure",)

    def verbs(self, verb: str = "") -> list[str]:
        """API calls since the last time, optionally of one kind."""
        calls = [call.verb for call in self.server.calls]
        self.server.calls.clear()
        return [it for it in calls if verb in it]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """With status and lease running."""
        tasks = [asyncio.create_task(it.run()) for it in (self.status, self.lease)]
        try:
            await self.clock.advance(0)
            yield
        finally:
            for task in tasks:
                assert not task.done()
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
