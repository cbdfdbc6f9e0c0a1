"""All metrics, by the page that has them. docs/metrics.md is checked against this."""

from collections.abc import Mapping

from podstatus.observe.metrics import kubelet_catalog, podstatus_catalog
from podstatus.observe.metrics.model import Metric

PAGES: Mapping[str, tuple[Metric, ...]] = {
    "/metrics": (
        *kubelet_catalog.KUBELET_METRICS,
        *podstatus_catalog.PODSTATUS_METRICS,
        *podstatus_catalog.PROCESS_METRICS,
    ),
    "/metrics/probes": kubelet_catalog.PROBE_METRICS,
    "/metrics/resource": kubelet_catalog.RESOURCE_METRICS,
    "/metrics/slis": kubelet_catalog.SLI_METRICS,
    "/metrics/cadvisor": (
        kubelet_catalog.CONTAINER_CPU,
        kubelet_catalog.CONTAINER_MEMORY,
        kubelet_catalog.CONTAINER_START,
    ),
}
