"""Build the metric pages of a node agent."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from podstatus.agent.compose.node_services import AgentNodeServices
from podstatus.agent.compose.pod_services import PodServices
from podstatus.alerts.metrics import alert_metrics
from podstatus.alerts.ports import AlertReader
from podstatus.base.clock import Clock
from podstatus.base.service_heartbeats import Heartbeats
from podstatus.client.rest.server_health import RequestMetrics
from podstatus.events.recorder import EventRecorder
from podstatus.observe.metrics.connection_collector import request_metrics, watch_metrics
from podstatus.observe.metrics.kubelet_collector import (
    KubeletMetricsSource,
    kubelet_metrics,
    probe_metrics,
)
from podstatus.observe.metrics.model import LazySamples, Samples
from podstatus.observe.metrics.pages import MetricPages
from podstatus.observe.metrics.podstatus_collector import (
    AgentMetricsSource,
    agent_metrics,
    podstatus_metrics,
    process_metrics,
)
from podstatus.observe.metrics.resource_collector import (
    ResourceMetricsSource,
    container_metrics,
    resource_metrics,
)
from podstatus.observe.metrics.sli_collector import HealthCheck, HealthCheckCollector
from podstatus.observe.metrics.watch_counters import WatchCounts
from podstatus.observe.metrics.work_counters import WorkCounts
from podstatus.observe.ports import StatusView
from podstatus.runtime.pleg import Pleg


def build_metric_pages(
    node_name: str,
    work: WorkCounts,
    pods: PodServices,
    node: AgentNodeServices,
    pleg: Pleg,
    recorder: EventRecorder,
    status_view: StatusView,
    *,
    alerts: AlertReader | None,
    requests: RequestMetrics,
    watch_counts: WatchCounts,
    has_container_stats: bool,
    heartbeats: Heartbeats,
    checks: Callable[[], Mapping[str, HealthCheck]],
    clock: Clock,
) -> MetricPages:
    """Build all metric pages. `has_container_stats`: the runtime reports container usage."""
    state = KubeletMetricsSource(
        node_name=node_name,
        counts=pods.counters.snapshot,
        work=work,
        desired_pods=pods.pod_manager.pods,
        mirror_pods=pods.pod_manager.mirror_pods,
        active_pods=pods.pod_registry.active_pods,
        lifecycles=pods.pod_registry.all,
        running=pleg.pods,
        last_relist=lambda: pleg.last_listed,
    )
    agent = AgentMetricsSource(
        counts=pods.counters.snapshot, events=lambda: recorder.counts, heartbeats=heartbeats
    )
    used = ResourceMetricsSource(
        snapshot=lambda: node.usage.snapshot,
        running=pleg.pods,
        measures_containers=has_container_stats,
    )

    def everything() -> Iterator[Samples | LazySamples]:
        yield from kubelet_metrics(state)
        yield from request_metrics(requests)
        yield from podstatus_metrics(status_view, clock)
        yield from agent_metrics(agent)
        yield from watch_metrics(watch_counts)
        yield from process_metrics()
        if alerts is not None:
            yield from alert_metrics(alerts)

    def probes() -> Iterable[Samples]:
        return probe_metrics(work)

    return MetricPages(
        {
            "": everything,
            "resource": lambda: resource_metrics(used),
            "cadvisor": lambda: container_metrics(used),
            "probes": probes,
            "slis": HealthCheckCollector(checks),
        }
    )
