"""Build the services of the agent's Node: registration, status, lease, usage."""

from collections.abc import Callable
from functools import partial

from podstatus import __version__
from podstatus.agent.compose.dependencies import AgentDependencies
from podstatus.agent.settings.eviction import hard_thresholds
from podstatus.agent.settings.model import AgentSettings
from podstatus.client import HttpNodeApi, node_reflector
from podstatus.events.object_references import node_reference
from podstatus.events.recorder import EventRecorder
from podstatus.eviction.decide.settings import hard_eviction_reservation
from podstatus.node.compose import NodeCallbacks, build_node
from podstatus.node.decide.conditions import AlertCondition, is_ready
from podstatus.node.decide.readings import MachineReading
from podstatus.node.facts_collector import FactSources
from podstatus.node.machine.node_addresses import node_addresses
from podstatus.node.machine.reader import DiskReader, read_machine
from podstatus.node.machine.system_info import kubelet_version, read_system_info
from podstatus.node.machine.usage import NodeUsage, RuntimeUsage, no_pod_usage
from podstatus.node.node_cache import NodeWatch
from podstatus.node.ports import NodeHealthCheck, node_problems
from podstatus.node.settings import NodeSettings
from podstatus.runtime.port import (
    ContainerStats,
    DiskStats,
    NodeLabels,
    PodStats,
    ResizesPods,
    Runtime,
    SystemStats,
)


class NodeEventRecorder:
    """Records events about the agent's Node."""

    def __init__(self, recorder: EventRecorder, name: str) -> None:
        self._recorder = recorder
        self._about = node_reference(name)

    def normal(self, reason: str, message: str) -> None:
        self._recorder.normal(self._about, reason, message)

    def warn(self, reason: str, message: str) -> None:
        self._recorder.warn(self._about, reason, message)


def build_usage(
    dependencies: AgentDependencies, *, on_reading: Callable[[MachineReading], bool]
) -> NodeUsage:
    """Build the sampler of the usage of the node and its pods."""
    return NodeUsage(
        DiskReader(dependencies.settings.root_dir),
        clock=dependencies.clock,
        runtime=_runtime_usage(dependencies.counted_runtime),
        read=read_machine,
        heartbeat=dependencies.heartbeats.register("usage", max_silent_seconds=60),
        on_reading=on_reading,
    )


class AgentNodeServices:
    def __init__(
        self,
        dependencies: AgentDependencies,
        usage: NodeUsage,
        *,
        pressures: Callable[[], tuple[str, ...]],
        shutting_down: NodeHealthCheck,
        on_recovered: Callable[[], None],
        port: Callable[[], int],
        alert_conditions: Callable[[], tuple[AlertCondition, ...]],
    ) -> None:
        runtime, clock, heartbeats = (
            dependencies.counted_runtime,
            dependencies.clock,
            dependencies.heartbeats,
        )
        settings = node_settings(dependencies.settings, runtime)
        self.usage = usage
        self.system_info = read_system_info(
            kubelet_version=kubelet_version(__version__),
            runtime_version=f"{runtime.name}://{runtime.version}",
        )
        checks = (dependencies.pleg.unhealthy_reason, usage.problem, shutting_down)
        self._services = build_node(
            settings,
            FactSources(
                info=self.system_info,
                usage=lambda: usage.snapshot,
                problems=partial(node_problems, checks, heartbeats),
                port=port,
                alert_conditions=alert_conditions,
                pressures=pressures,
                reserve=partial(hard_eviction_reservation, hard_thresholds(dependencies.settings)),
            ),
            api=HttpNodeApi(dependencies.clients.node),
            events=dependencies.node_events,
            clock=clock,
            node_cache=dependencies.node_cache,
            callbacks=NodeCallbacks(
                status_heartbeat=heartbeats.register("node-status", max_silent_seconds=60),
                lease_heartbeat=heartbeats.register("lease", max_silent_seconds=60),
                on_recovered=on_recovered,
            ),
        )
        self._node_cache = dependencies.node_cache
        self.status = self._services.status
        self.lease = self._services.lease
        watch = NodeWatch(dependencies.node_cache, self.status.request_sync)
        self.reflector = node_reflector(dependencies.clients.node, settings.name, watch)
        dependencies.signals.node_changed.connect(self.status.request_sync)

    async def collect_once(self) -> None:
        """Read the machine's capacity, so that pods can be admitted before registration."""
        await self.usage.sample_once()
        self._services.refresh_draft()

    def is_reported_not_ready(self) -> bool:
        """True if the API server's copy of the Node is not Ready."""
        server_copy = self._node_cache.server_copy
        return server_copy is not None and not is_ready(server_copy.status.conditions)

    def is_registered(self) -> bool:
        """True if the API server has the Node."""
        return self._node_cache.server_copy is not None

    def is_synced(self) -> bool:
        """True once this agent process has read the Node and renewed its lease."""
        return self._node_cache.server_copy is not None and self.lease.age_seconds is not None


def _runtime_usage(runtime: Runtime) -> RuntimeUsage:
    return RuntimeUsage(
        pods=runtime.usage if isinstance(runtime, PodStats) else no_pod_usage,
        containers=runtime.container_usage if isinstance(runtime, ContainerStats) else dict,
        disks=runtime.disk_usage if isinstance(runtime, DiskStats) else dict,
        system_containers=runtime.system_usage if isinstance(runtime, SystemStats) else dict,
    )


def host_ips(settings: AgentSettings) -> tuple[str, ...]:
    addresses = node_addresses(node_settings(settings, None))
    return tuple(it.address for it in addresses if it.type == "InternalIP")


def node_settings(settings: AgentSettings, runtime: Runtime | None) -> NodeSettings:
    """Derive the settings of the Node from those of the agent.

    Labels and features of the runtime are missing without one; addresses do not depend on it.
    """
    return NodeSettings(
        name=settings.node_name,
        labels=dict(settings.node_labels),
        supports_resize=isinstance(runtime, ResizesPods),
        runtime_labels=dict(runtime.node_labels) if isinstance(runtime, NodeLabels) else {},
        taints=settings.register_with_taints,
        register_node=settings.register_node,
        node_ips=() if settings.node_ip is None else (settings.node_ip,),
        provider_id=settings.provider_id or "",
        kube_reserved=dict(settings.kube_reserved),
        system_reserved=dict(settings.system_reserved),
        pods_per_core=settings.pods_per_core,
        max_pods=settings.max_pods,
        capacity=dict(settings.node_capacity),
        local_storage_isolation=settings.local_storage_capacity_isolation,
        status_update_seconds=settings.node_status_update_frequency,
        status_report_seconds=settings.node_status_report_frequency,
        lease_duration_seconds=settings.node_lease_duration_seconds,
    )
