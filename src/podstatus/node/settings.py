"""What a node is told about itself, as a value. `agent` reads it from files and flags."""

from collections.abc import Mapping

import msgspec
from msgspec import field

from podstatus.kube.objects.node import Taint
from podstatus.kube.scalars.quantity import Quantity

DEFAULT_EVICTION_HARD: Mapping[str, str] = {
    "memory.available": "100Mi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
}
"""Upstream: DefaultEvictionHard, eviction/defaults_linux.go v1.36.4; without those of image
filesystems, of which we have none."""


class NodeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Our node, as its owner wants it. Defaults are the kubelet's."""

    name: str
    hostname: str = ""
    """The label and the address; the name if empty."""
    node_ips: tuple[str, ...] = ()
    """One, or one of each family; found out if there is none."""
    port: int = 0
    """Where the agent listens, the node's `kubeletEndpoint`; 0 if that is known later."""
    provider_id: str = ""
    labels: dict[str, str] = {}
    """For a new Node, on top of those that every node has."""
    runtime_labels: dict[str, str] = {}
    """What the runtime says about itself: kept as they are here, whatever somebody made of them."""
    supports_resize: bool = False
    """Whether the runtime can give running containers other resources."""
    annotations: dict[str, str] = {}
    """For a new Node."""
    taints: tuple[Taint, ...] = ()
    """For a new Node; those of one that exists are its admin's."""
    register_node: bool = True
    """Whether to create the Node if there is none."""
    max_pods: int = 110
    pods_per_core: int = 0
    """If it is not 0, a lower limit than `max_pods` may come of it."""
    capacity: dict[str, Quantity] = {}
    """What to say instead of what the machine has, by resource."""
    kube_reserved: dict[str, Quantity] = {}
    system_reserved: dict[str, Quantity] = {}
    eviction_hard: dict[str, str] = field(default_factory=lambda: dict(DEFAULT_EVICTION_HARD))
    """Amounts or percentages by signal, below which there is pressure."""
    pressure_transition_seconds: float = 300.0
    """How long a pressure is shown after it was last seen."""
    status_update_seconds: float = 10.0
    """How often the status is computed, and sent if it changed."""
    status_report_seconds: float = 300.0
    """How often it is sent although nothing changed, more or less."""
    lease_duration_seconds: int = 40
    """A quarter of it passes between two renewals."""

    @property
    def effective_hostname(self) -> str:
        """The name of the machine that the Node shows."""
        return self.hostname or self.name
