"""A node that runs short of a resource, in virtual time.

    async with EvictionScene(tmp_path) as scene:
        scene.node.create(a_pod("p", "memory=2Gi"))
        await scene.passes(10)

Memory in use is what the simulated containers use; the test sets the disk.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from msgspec import structs

from podstatus.eviction.decide.model import EarlyRecovery, EvictionConfig
from podstatus.eviction.decide.settings import parse_threshold_config
from podstatus.eviction.manager import EvictionManager, NodeUsagePort
from podstatus.kube.objects.containers import Container, ResourceRequirements
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.usage import PodDiskUsage, Usage
from podstatus.kube.scalars.quantity import Quantity
from podstatus.node.decide.readings import CpuTimes, DiskReading, MachineReading, UsageSnapshot
from tests.support.agent_in_memory import EvictionSetup
from tests.support.node_in_memory import NodeInMemory

MI, GI = 2**20, 2**30
CONFIG = EvictionConfig(
    thresholds=parse_threshold_config(
        hard={"memory.available": "1Gi", "nodefs.available": "10%"}, enforce_node_allocatable=()
    ),
    early_recovery=EarlyRecovery(),
)


class EvictionScene:
    """A node of 8 GiB of memory and 100 GiB of disk, its pods and its agent."""

    def __init__(self, folder: Path, config: EvictionConfig = CONFIG) -> None:
        self.node = NodeInMemory(runtime_folder=folder / "runtime", state_folder=folder / "state")
        self.node_events: list[str] = []
        self.changes = 0
        self.disk_available = 50 * GI
        self.disks: dict[str, PodDiskUsage] = {}
        """Disk usage by pod name, as measured last."""
        self.written: dict[str, PodDiskUsage] = {}
        """What changed since."""
        self._snapshot: UsageSnapshot | None = None
        self.node.eviction = EvictionSetup(
            config=config,
            records=folder / "evictions",
            node=NodeUsagePort(
                snapshot=lambda: self._snapshot,
                sample=self.sample,
                measure_disks=self._measure_disks,
                pods_memory_limit=lambda: None,
                warn=lambda reason, message: self.node_events.append(f"{reason}: {message}"),
                on_change=self._changed,
            ),
        )

    async def __aenter__(self) -> Self:
        await self.node.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.node.__aexit__(*error)

    @property
    def manager(self) -> EvictionManager:
        manager = self.node.agent.eviction
        assert manager is not None
        return manager

    async def sample(self) -> UsageSnapshot:
        """Measure the usage now."""
        pods = await self.node.runtime.usage()
        at = self.node.clock.now()
        used = sum(usage.memory_bytes or 0 for usage in pods.values())
        uids = {name: self._uid(name) for name in self.disks}
        self._snapshot = UsageSnapshot(
            at=at,
            monotonic=self.node.clock.monotonic(),
            machine=self._machine(used),
            node=Usage(at=at),
            pods=pods,
            containers=self.node.runtime.container_usage(),
            disks={uid: self.disks[name] for name, uid in uids.items() if uid is not None},
        )
        return self._snapshot

    def _machine(self, memory_used: int) -> MachineReading:
        return MachineReading(
            cores=4,
            cpu=CpuTimes(0, 0),
            memory_bytes=8 * GI,
            memory_available_bytes=max(0, 8 * GI - memory_used),
            pids=100,
            max_pids=10_000,
            disk=DiskReading(
                total_bytes=100 * GI,
                used_bytes=100 * GI - self.disk_available,
                available_bytes=self.disk_available,
                inodes=1000,
                inodes_free=900,
            ),
        )

    async def read(self) -> bool:
        """A reading is taken; return whether the next should follow quickly."""
        return self.manager.observe((await self.sample()).machine)

    async def passes(self, seconds: int) -> None:
        """Time passes; a reading is taken every 2 seconds."""
        for _ in range(0, seconds, 2):
            await self.read()
            await self.node.passes(2)

    def conditions(self) -> list[str]:
        """The pressure conditions that are True."""
        return list(self.manager.node_conditions)

    def evicted(self, name: str) -> list[str]:
        """The events of evictions of a pod."""
        return self.node.events(name, "Evicted")

    def _uid(self, name: str) -> PodUID | None:
        pod = self.node.pod(name)
        return None if pod is None else pod.uid

    async def _measure_disks(self) -> None:
        await self.node.clock.wait(0.1)
        self.disks |= self.written

    def _changed(self) -> None:
        self.changes += 1


def with_requests(pod: Pod, requests: Mapping[str, str], limits: Mapping[str, str] = {}) -> Pod:
    """The pod with these resources of each container."""

    def changed(container: Container) -> Container:
        resources = ResourceRequirements(
            requests={name: Quantity(text) for name, text in requests.items()} or None,
            limits={name: Quantity(text) for name, text in limits.items()} or None,
        )
        return structs.replace(container, resources=resources)

    containers = tuple(changed(container) for container in pod.spec.containers or ())
    return structs.replace(pod, spec=structs.replace(pod.spec, containers=containers))
