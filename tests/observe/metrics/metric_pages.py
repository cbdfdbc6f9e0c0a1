"""Every metrics page of an agent, as text."""

from podstatus.alerts.metrics import alert_metrics
from podstatus.observe.metrics.connection_collector import request_metrics, watch_metrics
from podstatus.observe.metrics.kubelet_collector import kubelet_metrics, probe_metrics
from podstatus.observe.metrics.model import Samples, flatten
from podstatus.observe.metrics.podstatus_collector import (
    agent_metrics,
    podstatus_metrics,
    process_metrics,
)
from podstatus.observe.metrics.resource_collector import container_metrics, resource_metrics
from podstatus.observe.metrics.sli_collector import HealthCheckCollector
from tests.observe.metrics.metric_state import Watched
from tests.support.web.fake_alerts import FakeAlerts, an_alert


def pages(watched: Watched) -> dict[str, list[Samples]]:
    """All samples, by page."""
    return {
        "/metrics": [
            *kubelet_metrics(watched.node),
            *request_metrics(watched.requests),
            *flatten(podstatus_metrics(watched, watched.clock)),
            *agent_metrics(watched.agent),
            *watch_metrics(watched.watching),
            *process_metrics(),
            *alert_metrics(FakeAlerts(an_alert())),
        ],
        "/metrics/probes": list(probe_metrics(watched.work)),
        "/metrics/resource": list(resource_metrics(watched.usage())),
        "/metrics/slis": list(HealthCheckCollector(lambda: {"ping": lambda: None})()),
        "/metrics/cadvisor": list(container_metrics(watched.usage()) or ()),
    }
