"""Build the eviction manager from the settings."""

from collections.abc import Callable

from podstatus.agent.compose.dependencies import AgentDependencies
from podstatus.agent.compose.node_services import node_settings
from podstatus.agent.settings.eviction import eviction_thresholds
from podstatus.agent.settings.model import AgentSettings
from podstatus.eviction.decide.model import SINGLE_FILESYSTEM, EarlyRecovery, EvictionConfig
from podstatus.eviction.decide.settings import with_containerfs_thresholds
from podstatus.eviction.manager import EvictionManager, NodeUsagePort
from podstatus.eviction.records import EvictionRecords
from podstatus.node.decide.capacity import MEMORY, node_capacity, sum_reserved
from podstatus.node.machine.usage import NodeUsage
from podstatus.runtime.port import DiskStats
from podstatus.workers.allocation.allocations import AllocationManager
from podstatus.workers.dependencies import WorkerDependencies
from podstatus.workers.pod_workers import PodWorkers

_NANO = 1_000_000_000


def eviction_config(settings: AgentSettings) -> EvictionConfig:
    """Return the configuration. Raises ValueError if a threshold is invalid."""
    thresholds = eviction_thresholds(settings)
    return EvictionConfig(
        thresholds=with_containerfs_thresholds(thresholds, SINGLE_FILESYSTEM),
        pressure_transition_period=round(settings.eviction_pressure_transition_period * _NANO),
        max_pod_grace_period_seconds=settings.eviction_max_pod_grace_period,
        local_storage_isolation=settings.local_storage_capacity_isolation,
        early_recovery=EarlyRecovery(),
    )


def build_eviction_manager(
    dependencies: AgentDependencies,
    workers: WorkerDependencies,
    pod_workers: PodWorkers,
    usage: NodeUsage,
    records: EvictionRecords,
    allocations: AllocationManager,
    all_sources_ready: Callable[[], bool],
) -> EvictionManager:
    runtime = dependencies.counted_runtime
    return EvictionManager(
        workers,
        pod_workers,
        eviction_config(dependencies.settings),
        records=records,
        node=NodeUsagePort(
            snapshot=lambda: usage.snapshot,
            sample=usage.sample_once,
            measure_disks=runtime.measure_disks if isinstance(runtime, DiskStats) else _no_disks,
            pods_memory_limit=lambda: _pods_memory_limit(dependencies.settings, usage),
            warn=dependencies.node_events.warn,
            on_change=dependencies.signals.node_changed,
        ),
        allocated=allocations.allocated,
        all_sources_ready=all_sources_ready,
        heartbeat=dependencies.heartbeats.register("eviction", max_silent_seconds=120),
    )


async def _no_disks() -> None:
    """Of a runtime that does not measure them."""


def _pods_memory_limit(settings: AgentSettings, usage: NodeUsage) -> int | None:
    """The capacity without reservations. Upstream: the limit of the cgroup of all pods."""
    machine = None if usage.snapshot is None else usage.snapshot.machine
    capacity = node_capacity(node_settings(settings, None), machine).get(MEMORY)
    if capacity is None:
        return None
    reserved = sum_reserved(MEMORY, (settings.kube_reserved, settings.system_reserved))
    return (capacity.nanos - reserved) // _NANO
