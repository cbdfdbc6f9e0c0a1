"""The times and rates by which silent nodes are handled.

Upstream: pkg/controller/nodelifecycle/config/v1alpha1/defaults.go and
cmd/kube-controller-manager/app/options/nodelifecyclecontroller.go v1.36.4.
"""

import msgspec


class NodeMonitorPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds, and nodes per second. The fields have the names of kube-controller-manager's flags.

    All have upstream's defaults, except the grace period: there it is 50 s, to outlast the health
    checks of Go's HTTP/2 connections, which are not used here
    (docs/decisions/0053-silent-nodes.md).
    """

    node_monitor_period: float = 5.0
    node_monitor_grace_period: float = 40.0
    """A node renews its Lease every 10 s, so three renewals may fail."""
    node_startup_grace_period: float = 60.0
    node_eviction_rate: float = 0.1
    """Nodes per second that get a taint NoExecute."""
    secondary_node_eviction_rate: float = 0.01
    """The same in a large zone where most nodes are not Ready; in a small one it is 0."""
    unhealthy_zone_threshold: float = 0.55
    large_cluster_size_threshold: int = 50
