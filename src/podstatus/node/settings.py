"""Settings of the node; `agent` reads them from files and flags."""

import msgspec

from podstatus.kube.objects.node import Taint
from podstatus.kube.scalars.quantity import Quantity


class NodeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the node. Defaults are the kubelet's."""

    name: str
    hostname: str = ""
    """For the hostname label and address; empty: `name`."""
    node_ips: tuple[str, ...] = ()
    """One address, or one per IP family; detected if empty."""
    port: int = 0
    """Port of the node's `kubeletEndpoint`; 0 if the agent sets it later."""
    provider_id: str = ""
    labels: dict[str, str] = {}
    """Labels of a new Node, in addition to the standard ones."""
    runtime_labels: dict[str, str] = {}
    """Labels of the runtime; restored if another client changes them."""
    supports_resize: bool = False
    """Whether the runtime can resize running containers."""
    annotations: dict[str, str] = {}
    """Annotations of a new Node."""
    taints: tuple[Taint, ...] = ()
    """Taints of a new Node; the taints of an existing Node belong to its admin."""
    register_node: bool = True
    """Whether to create the Node if it does not exist."""
    max_pods: int = 110
    pods_per_core: int = 0
    """If not 0, limits the pods to this number per core, at most `max_pods`."""
    capacity: dict[str, Quantity] = {}
    """Overrides of the machine's capacity, by resource."""
    local_storage_isolation: bool = True
    """Whether to report the capacity of local ephemeral storage."""
    kube_reserved: dict[str, Quantity] = {}
    system_reserved: dict[str, Quantity] = {}
    status_update_seconds: float = 10.0
    """Interval between two computations of the status, which is sent if it changed."""
    status_report_seconds: float = 300.0
    """Approximate interval between two reports of an unchanged status."""
    lease_duration_seconds: int = 40
    """Renewed every quarter of this duration."""

    @property
    def effective_hostname(self) -> str:
        """The host name in the Node's label and address."""
        return self.hostname or self.name
