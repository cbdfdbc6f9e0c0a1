"""Put together what looks after our Node: registration, status, lease, usage."""

from collections.abc import Awaitable, Callable, Mapping

from podstatus import __version__
from podstatus.agent.settings.model import AgentSettings
from podstatus.base.clock import Clock
from podstatus.base.heartbeat import Heartbeats
from podstatus.client import ApiClient, HttpNodeApi, node_reflector
from podstatus.events.event import node_reference
from podstatus.events.recorder import EventRecorder
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.usage import Usage
from podstatus.node.compose import build_node
from podstatus.node.decide.conditions import AlertCondition, is_ready
from podstatus.node.decide.pressure import parse_thresholds
from podstatus.node.machine.addresses import node_addresses
from podstatus.node.machine.reader import DiskReader
from podstatus.node.machine.system_info import kubelet_version, read_system_info
from podstatus.node.machine.usage import NodeUsage
from podstatus.node.ports import NodeHealth, NodeHealthCheck
from podstatus.node.pressure_monitor import PressureMonitor
from podstatus.node.settings import NodeSettings
from podstatus.runtime.port import ContainerStats, NodeLabels, PodStats, ResizesPods, Runtime


class _NodeEventRecorder:
    """Events about our Node."""

    def __init__(self, recorder: EventRecorder, name: str) -> None:
        self._recorder = recorder
        self._about = node_reference(name)

    def normal(self, reason: str, message: str) -> None:
        self._recorder.normal(self._about, reason, message)

    def warn(self, reason: str, message: str) -> None:
        self._recorder.warn(self._about, reason, message)


class AgentNodeServices:
    """The services of our Node, wired."""

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
        told = node_settings(settings, runtime)
        self.events = _NodeEventRecorder(recorder, told.name)
        thresholds = parse_thresholds(told.eviction_hard)
        shortage = PressureMonitor(thresholds, self._report_pressure, clock=clock)
        self.usage = NodeUsage(
            DiskReader(settings.root_dir),
            clock=clock,
            pods=_pod_usage(runtime),
            containers=runtime.container_usage if isinstance(runtime, ContainerStats) else dict,
            heartbeat=heartbeats.register("usage", max_silent_seconds=60),
            on_reading=shortage.observe,
        )
        self._services = build_node(
            told,
            api=HttpNodeApi(client),
            info=read_system_info(
                kubelet_version=kubelet_version(__version__),
                runtime_version=f"{runtime.name}://{runtime.version}",
            ),
            usage=lambda: self.usage.snapshot,
            health=NodeHealth(
                runtime_problem, self.usage.problem, shutting_down, heartbeats=heartbeats
            ),
            events=self.events,
            clock=clock,
            port=port,
            alert_conditions=alert_conditions,
            on_recovered=on_recovered,
            status_heartbeat=heartbeats.register("node-status", max_silent_seconds=60),
            lease_heartbeat=heartbeats.register("lease", max_silent_seconds=60),
        )
        self.node_cache = self._services.node_cache
        self.status = self._services.status
        self.lease = self._services.lease
        self.reflector = node_reflector(client, told.name, self.node_cache)
        self._host_ips = tuple(a.address for a in node_addresses(told) if a.type == "InternalIP")

    async def collect_once(self) -> None:
        """Find out what the machine has: pods are admitted by it before the Node is registered."""
        await self.usage.sample_once()
        self._services.refresh_draft()

    def _report_pressure(self) -> None:
        self.status.request_sync()

    def is_reported_not_ready(self) -> bool:
        """Whether the API server shows our Node as not Ready."""
        known = self.node_cache.server_copy
        return known is not None and not is_ready(known.status.conditions)

    def host_ips(self) -> tuple[str, ...]:
        """The addresses that pods of this node show as their host's."""
        return self._host_ips


def node_settings(settings: AgentSettings, runtime: Runtime | None = None) -> NodeSettings:
    """What the settings of the agent, and its runtime, say about its Node."""
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
