"""The resources the server has, with their names. Their rules are in `strategies`."""

import msgspec

from podstatus.kube.patch.schema import Schema


class ResourceInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Names, scope and schema of one resource."""

    group: str = ""
    version: str = "v1"
    plural: str
    kind: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    """Paths below the object: `status`, `binding`, …"""
    computed: bool = False
    """Whether its objects are computed at each request: they can only be read, and not watched."""

    @property
    def schema(self) -> Schema:
        """The fields, and how a strategic merge patch treats lists."""
        return Schema(type=self.kind)

    @property
    def singular(self) -> str:
        # As metrics-server: `podmetrics` would be a second name of a resource called `pods`.
        return "" if self.computed else self.kind.lower()

    @property
    def api_version(self) -> str:
        """The group and version: `v1`, `coordination.k8s.io/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def prefix(self) -> str:
        """The path prefix: `/api/v1`, `/apis/coordination.k8s.io/v1`."""
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.api_version}"


NAMESPACES = ResourceInfo(
    plural="namespaces",
    kind="Namespace",
    namespaced=False,
    short_names=("ns",),
    subresources=("status",),
)
PODS = ResourceInfo(
    plural="pods",
    kind="Pod",
    short_names=("po",),
    categories=("all",),
    subresources=("status", "binding", "resize", "log", "exec", "attach"),
)
NODES = ResourceInfo(
    plural="nodes",
    kind="Node",
    namespaced=False,
    short_names=("no",),
    subresources=("status", "proxy"),
)
EVENTS = ResourceInfo(plural="events", kind="Event", short_names=("ev",))
LEASES = ResourceInfo(group="coordination.k8s.io", plural="leases", kind="Lease")
CONFIG_MAPS = ResourceInfo(plural="configmaps", kind="ConfigMap", short_names=("cm",))
SECRETS = ResourceInfo(plural="secrets", kind="Secret")
SERVICE_ACCOUNTS = ResourceInfo(
    plural="serviceaccounts",
    kind="ServiceAccount",
    short_names=("sa",),
    subresources=("token",),
)
SERVICES = ResourceInfo(
    plural="services",
    kind="Service",
    short_names=("svc",),
    categories=("all",),
    subresources=("status",),
)
RESOURCES = (
    *(NAMESPACES, PODS, NODES, EVENTS, LEASES),
    *(CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS, SERVICES),
)
"""The resources whose objects are stored."""

METRICS_GROUP = "metrics.k8s.io"
NODE_METRICS = ResourceInfo(
    group=METRICS_GROUP,
    version="v1beta1",
    plural="nodes",
    kind="NodeMetrics",
    namespaced=False,
    computed=True,
)
POD_METRICS = ResourceInfo(
    group=METRICS_GROUP, version="v1beta1", plural="pods", kind="PodMetrics", computed=True
)
SERVED_RESOURCES = (*RESOURCES, NODE_METRICS, POD_METRICS)
"""All resources. Plurals are unique among the stored ones only."""
