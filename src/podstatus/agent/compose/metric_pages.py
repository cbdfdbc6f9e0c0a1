"""Build the metric pages of a node agent."""

from collections.abc import Callable, Iterator, Mapping

from podstatus.agent.compose.dependencies import AgentDependencies
from podstatus.agent.compose.node_services import AgentNodeServices
from podstatus.agent.compose.pod_services import PodServices
from podstatus.alerts.metrics import alert_metrics
from podstatus.alerts.ports import AlertReader
from podstatus.node.machine.details import read_machine_details
from podstatus.observe.metrics.cadvisor_page import CadvisorPage, CadvisorSources
from podstatus.observe.metrics.exposition import MetricPages
from podstatus.observe.metrics.kubelet_collector import (
    KubeletMetricsSource,
    kubelet_metrics,
    probe_metrics,
    request_metrics,
)
from podstatus.observe.metrics.model import LazySamples, Samples
from podstatus.observe.metrics.podstatus_collector import (
    agent_metrics,
    podstatus_metrics,
    process_metrics,
    process_start,
    watch_metrics,
)
from podstatus.observe.metrics.resource_collector import resource_metrics
from podstatus.observe.metrics.sli_collector import HealthCheck, HealthCheckCollector
from podstatus.observe.metrics.watch_counters import WatchCounts
from podstatus.observe.ports import StatusView
from podstatus.runtime.port import ContainerStats, DetailedStats


def build_metric_pages(
    dependencies: AgentDependencies,
    pods: PodServices,
    node: AgentNodeServices,
    status_view: StatusView,
    *,
    alerts: AlertReader | None,
    watch_counts: WatchCounts,
    checks: Callable[[], Mapping[str, HealthCheck]],
) -> MetricPages:
    """Build all metric pages. `alerts`: None if alerts are disabled."""
    pleg, recorder = dependencies.pleg, dependencies.recorder
    state = KubeletMetricsSource(
        node_name=dependencies.settings.node_name,
        counts=pods.counters.snapshot,
        runtime=dependencies.runtime_metrics,
        workers=pods.worker_metrics,
        evictions=pods.eviction.metrics,
        desired_pods=pods.pod_manager.pods,
        mirror_pods=pods.pod_manager.mirror_pods,
        active_pods=pods.pod_registry.active_pods,
        lifecycles=pods.pod_registry.all,
        running=pleg.pods,
        last_relist=lambda: pleg.last_listed,
    )
    cadvisor = _cadvisor_page(dependencies, node)

    def everything() -> Iterator[Samples | LazySamples]:
        yield from kubelet_metrics(state)
        yield from request_metrics(dependencies.server_health.requests)
        yield from podstatus_metrics(status_view, dependencies.clock)
        yield from agent_metrics(pods.counters.snapshot(), recorder.counts, dependencies.heartbeats)
        yield from watch_metrics(watch_counts)
        yield from process_metrics()
        if alerts is not None:
            yield from alert_metrics(alerts)

    def probes() -> Iterator[Samples]:
        yield from probe_metrics(pods.probe_metrics)
        yield process_start()

    return MetricPages(
        {
            "": everything,
            "resource": lambda: resource_metrics(node.usage.snapshot, pleg.pods()),
            "cadvisor": lambda: None if cadvisor is None else cadvisor.collect(),
            "probes": probes,
            "slis": HealthCheckCollector(checks),
        }
    )


def _cadvisor_page(dependencies: AgentDependencies, node: AgentNodeServices) -> CadvisorPage | None:
    """Build the page; None if the runtime does not measure containers."""
    runtime = dependencies.counted_runtime
    pods = runtime.details_reader if isinstance(runtime, DetailedStats) else lambda: dict
    if not isinstance(runtime, ContainerStats):
        return None
    sources = CadvisorSources(
        snapshot=lambda: node.usage.snapshot,
        running=dependencies.pleg.pods,
        pods=pods,
        machine=read_machine_details,
        info=node.system_info,
    )
    return CadvisorPage(sources, clock=dependencies.clock)
