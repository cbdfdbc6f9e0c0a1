"""NodeMetrics and PodMetrics: the Resource Metrics API, metrics.k8s.io/v1beta1.

Upstream: k8s.io/metrics v0.36.4, pkg/apis/metrics/v1beta1/types.go.
"""

from msgspec import field

from podstatus.kube.encoding.wire_struct import Wire
from podstatus.kube.objects.cluster import KubeObject
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.scalars.time import Time


class ContainerMetrics(Wire, frozen=True, kw_only=True):
    """The usage of a container: `cpu` in cores, and the memory working set."""

    name: str = field(default_factory=str)
    usage: dict[str, Quantity] = field(default_factory=dict)


class NodeMetrics(KubeObject, frozen=True, kw_only=True):
    """The usage of a node in the interval from `timestamp` - `window` to `timestamp`."""

    timestamp: Time = field(default_factory=Time)
    window: str = field(default_factory=str)
    """A duration as Go prints it."""
    usage: dict[str, Quantity] = field(default_factory=dict)


class PodMetrics(KubeObject, frozen=True, kw_only=True):
    """The usage of the containers of a pod in the interval that ends at `timestamp`."""

    timestamp: Time = field(default_factory=Time)
    window: str = field(default_factory=str)
    containers: tuple[ContainerMetrics, ...] = field(default_factory=tuple)
