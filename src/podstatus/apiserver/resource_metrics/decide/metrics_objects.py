"""NodeMetrics and PodMetrics, as metrics-server returns them.

Upstream: metrics-server, GetMetrics in pkg/storage/node.go and pod.go, resourceUsage in
pkg/storage/types.go.
"""

from collections.abc import Mapping

from podstatus.apiserver.resource_metrics.decide.node_stats import MeasuredPod, UsagePoint
from podstatus.apiserver.strategies.base import Document
from podstatus.kube.encoding.codec import to_document
from podstatus.kube.objects.meta import ObjectMeta
from podstatus.kube.objects.metrics import ContainerMetrics, NodeMetrics, PodMetrics
from podstatus.kube.scalars.duration import format_duration
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.scalars.time import Time

WINDOW_SECONDS = 10.0
"""Between two readings of an agent (`usageNanoCores` is the mean since the reading before), and
of the kubelet's cAdvisor. The summary does not say it."""


def node_metrics(name: str, labels: Mapping[str, str], usage: UsagePoint, now: Time) -> Document:
    """Return the NodeMetrics of a node, without kind and version."""
    metadata = ObjectMeta(name=name, labels=dict(labels) or None, creation_timestamp=now)
    return to_document(
        NodeMetrics(
            metadata=metadata,
            timestamp=usage.at,
            window=format_duration(WINDOW_SECONDS),
            usage=_resources(usage),
        )
    )


def pod_metrics(
    namespace: str, name: str, labels: Mapping[str, str], usage: MeasuredPod, now: Time
) -> Document:
    """Return the PodMetrics of a pod, without kind and version."""
    metadata = ObjectMeta(
        name=name, namespace=namespace, labels=dict(labels) or None, creation_timestamp=now
    )
    points = usage.containers
    return to_document(
        PodMetrics(
            metadata=metadata,
            timestamp=min(point.at for point in points.values()),
            window=format_duration(WINDOW_SECONDS),
            containers=tuple(
                ContainerMetrics(name=name, usage=_resources(point))
                for name, point in points.items()
            ),
        )
    )


def _resources(usage: UsagePoint) -> dict[str, Quantity]:
    return {
        "cpu": Quantity(f"{usage.cpu_nanocores}n"),
        "memory": Quantity.of(usage.memory_bytes, "BinarySI"),
    }
