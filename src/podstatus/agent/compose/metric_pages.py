"""Build the metric pages of a node agent."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from podstatus.agent.compose.dependencies import AgentDependencies
from podstatus.agent.compose.node_services import AgentNodeServices
from podstatus.agent.compose.pod_services import PodServices
from podstatus.alerts.metrics import alert_metrics
from podstatus.alerts.ports import AlertReader
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
    watch_metrics,
)
from podstatus.observe.metrics.resource_collector import (
    container_metrics,
    resource_metrics,
)
from podstatus.observe.metrics.sli_collector import HealthCheck, HealthCheckCollector
from podstatus.observe.metrics.watch_counters import WatchCounts
from podstatus.observe.ports import StatusView
from podstatus.runtime.port import ContainerStats


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
        desired_pods=pods.pod_manager.pods,
        mirror_pods=pods.pod_manager.mirror_pods,
        active_pods=pods.pod_registry.active_pods,
        lifecycles=pods.pod_registry.all,
        running=pleg.pods,
        last_relist=lambda: pleg.last_listed,
    )
    measures_containers = isinstance(dependencies.counted_runtime, ContainerStats)

    def everything() -> Iterator[Samples | LazySamples]:
        yield from kubelet_metrics(state)
        yield from request_metrics(dependencies.server_health.requests)
        yield from podstatus_metrics(status_view, dependencies.clock)
        yield from agent_metrics(pods.counters.snapshot(), recorder.counts, dependencies.heartbeats)
        yield from watch_metrics(watch_counts)
        yield from process_metrics()
        if alerts is not None:
            yield from alert_metrics(alerts)

    def containers() -> Iterable[Samples] | None:
        if not measures_containers:
            return None
        return container_metrics(node.usage.snapshot, pleg.pods())

    return MetricPages(
        {
            "": everything,
            "resource": lambda: resource_metrics(node.usage.snapshot, pleg.pods()),
            "cadvisor": containers,
            "probes": lambda: probe_metrics(pods.probe_metrics),
            "slis": HealthCheckCollector(checks),
        }
    )
