"""The metrics pages of an agent: what is declared for each, and what is collected."""

from podstatus.alerts.metrics import alert_metrics
from podstatus.observe.metrics import cadvisor_catalog, kubelet_catalog, podstatus_catalog
from podstatus.observe.metrics.cadvisor_collector import cadvisor_metrics
from podstatus.observe.metrics.kubelet_collector import (
    kubelet_metrics,
    probe_metrics,
    request_metrics,
)
from podstatus.observe.metrics.model import Metric, Samples, flatten
from podstatus.observe.metrics.podstatus_collector import (
    agent_metrics,
    podstatus_metrics,
    process_metrics,
    process_start,
    watch_metrics,
)
from podstatus.observe.metrics.resource_collector import resource_metrics
from podstatus.observe.metrics.sli_collector import HealthCheckCollector
from tests.observe.metrics.metric_state import Watched
from tests.support.web.fake_alerts import FakeAlerts, an_alert

DECLARED = [
    metric
    for catalog in (kubelet_catalog, podstatus_catalog)
    for metric in vars(catalog).values()
    if isinstance(metric, Metric)
]


def _named(*prefixes: str) -> list[Metric]:
    return [metric for metric in DECLARED if metric.name.startswith(prefixes)]


PAGES = {
    "/metrics": _named("kubelet_", "rest_client_", "podstatus_", "ALERTS", "process_"),
    "/metrics/probes": [*_named("prober_"), podstatus_catalog.START],
    "/metrics/resource": _named("node_", "container_", "pod_", "resource_"),
    "/metrics/slis": _named("kubernetes_"),
    "/metrics/cadvisor": list(cadvisor_catalog.ALL),
}
"""All metrics, by page, in the order in which they are declared and documented."""


def pages(watched: Watched) -> dict[str, list[Samples]]:
    """All samples, by page."""
    return {
        "/metrics": [
            *kubelet_metrics(watched.node),
            *request_metrics(watched.requests),
            *flatten(podstatus_metrics(watched, watched.clock)),
            *agent_metrics(*watched.agent),
            *watch_metrics(watched.watching),
            *process_metrics(),
            *alert_metrics(FakeAlerts(an_alert())),
        ],
        "/metrics/probes": [*probe_metrics(watched.probe_metrics), process_start()],
        "/metrics/resource": list(resource_metrics(*watched.usage)),
        "/metrics/slis": list(HealthCheckCollector(lambda: {"ping": lambda: None})()),
        "/metrics/cadvisor": list(cadvisor_metrics(watched.cadvisor)),
    }
