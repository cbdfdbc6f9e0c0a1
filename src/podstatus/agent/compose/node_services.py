"""Build the services of the agent's Node: registration, status, lease, usage."""

from collections.abc import Awaitable, Callable, Mapping

from podstatus import __version__
from podstatus.agent.settings.model import AgentSettings
from podstatus.base.clock import Clock
from podstatus.base.service_heartbeats import Heartbeats
from podstatus.client import ApiClient, HttpNodeApi, node_reflector
from podstatus.events.object_references import node_reference
from podstatus.events.recorder import EventRecorder
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.usage import Usage
from podstatus.node.compose import NodeHeartbeats, build_node
from podstatus.node.decide.conditions import AlertCondition, is_ready
from podstatus.node.decide.pressure_conditions import parse_thresholds
from podstatus.node.decide.pressure_trigger import PressureMonitor
from podstatus.node.facts_collector import FactSources
from podstatus.node.machine.node_addresses import node_addresses
from podstatus.node.machine.reader import DiskReader
from podstatus.node.machine.system_info import kubelet_version, read_system_info
from podstatus.node.machine.usage import NodeUsage
from podstatus.node.ports import NodeHealth, NodeHealthCheck
from podstatus.node.settings import NodeSettings
from podstatus.runtime.port import ContainerStats, NodeLabels, PodStats, ResizesPods, Runtime


class _NodeEventRecorder:
    """Records events about the agent's Node."""

    def __init__(self, recorder: EventRecorder, name: str) -> None:
        self._recorder = recorder
        self._about = node_reference(name)

    def normal(self, reason: str, message: str) -> None:
        self._recorder.normal(self._about, reason, message)

    def warn(self, reason: str, message: str) -> None:
        self._recorder.warn(self._about, reason, message)


class AgentNodeServices:
    """The services of the agent's Node, connected."""

    def __init__(
        self,
        settings: AgentSettings,
        client: ApiClient,
        runtime: Runtime,
        recorder: EventRecorder,
        *,
        runtime_problem: NodeHealthCheck,
        shutting_down: NodeHealthCheck,
        on_recovered: Callable[[], None],
        heartbeats: Heartbeats,
        clock: Clock,
        port: Callable[[], int] = int,
        alert_conditions: Callable[[], tuple[AlertCondition, ...] | None] = tuple,
    ) -> None:
        own_settings = node_settings(settings, runtime)
        self.events = _NodeEventRecorder(recorder, own_settings.name)
        thresholds = parse_thresholds(own_settings.eviction_hard)
        pressure = PressureMonitor(thresholds, self._report_pressure, clock=clock)
        self.usage = NodeUsage(
            DiskReader(settings.root_dir),
            clock=clock,
            pods=_pod_usage(runtime),
            containers=runtime.container_usage if isinstance(runtime, ContainerStats) else dict,
            heartbeat=heartbeats.register("usage", max_silent_seconds=60),
            on_reading=pressure.observe,
        )
        self._services = build_node(
            own_settings,
            FactSources(
                info=read_system_info(
                    kubelet_version=kubelet_version(__version__),
                    runtime_version=f"{runtime.name}://{runtime.version}",
                ),
                usage=lambda: self.usage.snapshot,
                health=NodeHealth(
                    runtime_problem, self.usage.problem, shutting_down, heartbeats=heartbeats
                ),
                port=port,
                alert_conditions=alert_conditions,
            ),
            api=HttpNodeApi(client),
            events=self.events,
            clock=clock,
            heartbeats=NodeHeartbeats(
                status=heartbeats.register("node-status", max_silent_seconds=60),
                lease=heartbeats.register("lease", max_silent_seconds=60),
            ),
            on_recovered=on_recovered,
        )
        self.node_cache = self._services.node_cache
        self.status = self._services.status
        self.lease = self._services.lease
        self.reflector = node_reflector(client, own_settings.name, self.node_cache)
        self._host_ips = tuple(
            it.address for it in node_addresses(own_settings) if it.type == "InternalIP"
        )

    async def collect_once(self) -> None:
        """Read the machine's capacity, so that pods can be admitted before registration."""
        await self.usage.sample_once()
        self._services.refresh_draft()

    def _report_pressure(self) -> None:
        self.status.request_sync()

    def is_reported_not_ready(self) -> bool:
        """True if the API server's copy of the Node is not Ready."""
        server_copy = self.node_cache.server_copy
        return server_copy is not None and not is_ready(server_copy.status.conditions)

    def host_ips(self) -> tuple[str, ...]:
        """Return the internal IPs of the node, for `status.hostIPs` of its pods."""
        return self._host_ips


def node_settings(settings: AgentSettings, runtime: Runtime | None = None) -> NodeSettings:
    """Derive the settings of the Node from those of the agent and from its runtime."""
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
        eviction_hard=dict(settings.eviction_hard),
        pressure_transition_seconds=settings.eviction_pressure_transition_period,
        status_update_seconds=settings.node_status_update_frequency,
        status_report_seconds=settings.node_status_report_frequency,
        lease_duration_seconds=settings.node_lease_duration_seconds,
    )


def _pod_usage(runtime: Runtime) -> Callable[[], Awaitable[Mapping[PodUID, Usage]]]:
    if isinstance(runtime, PodStats):
        return runtime.usage
    return _no_usage


async def _no_usage() -> Mapping[PodUID, Usage]:
    return {}
