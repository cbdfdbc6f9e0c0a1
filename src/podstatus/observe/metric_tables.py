"""All metrics there are, by the page they are on. docs/metrics.md is checked against it."""

from collections.abc import Mapping

from podstatus.observe import kubelet_table, own_table
from podstatus.observe.metric import Metric

PAGES: Mapping[str, tuple[Metric, ...]] = {
    "/metrics": (*kubelet_table.KUBELET, *own_table.OWN, *own_table.PROCESS),
    "/metrics/probes": kubelet_table.PROBES,
    "/metrics/resource": kubelet_table.RESOURCES,
    "/metrics/slis": kubelet_table.SLIS,
    "/metrics/cadvisor": (
        kubelet_table.CONTAINER_CPU,
        kubelet_table.CONTAINER_MEMORY,
        kubelet_table.CONTAINER_START,
    ),
}
