"""All metrics there are, by the page they are on. docs/metrics.md is checked against it."""

from collections.abc import Mapping

from podstatus.observe.metrics import kubelet_catalog, podstatus_catalog
from podstatus.observe.metrics.model import Metric

PAGES: Mapping[str, tuple[Metric, ...]] = {
    "/metrics": (*kubelet_catalog.KUBELET, *podstatus_catalog.OWN, *podstatus_catalog.PROCESS),
    "/metrics/probes": kubelet_catalog.PROBES,
    "/metrics/resource": kubelet_catalog.RESOURCES,
    "/metrics/slis": kubelet_catalog.SLIS,
    "/metrics/cadvisor": (
        kubelet_catalog.CONTAINER_CPU,
        kubelet_catalog.CONTAINER_MEMORY,
        kubelet_catalog.CONTAINER_START,
    ),
}
