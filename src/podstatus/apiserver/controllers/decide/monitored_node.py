"""What the node monitor knows of a Node."""

import msgspec

from podstatus.apiserver.controllers.decide.node_health import UNKNOWN, ready_condition
from podstatus.apiserver.controllers.decide.node_taints import no_execute_keys
from podstatus.apiserver.controllers.decide.zones import ZoneName
from podstatus.kube.objects.node import Node, NodeCondition

_REGION_LABELS = ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")
_ZONE_LABELS = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
_EXCLUDED_LABEL = "node.kubernetes.io/exclude-disruption"


class MonitoredNode(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a Node that decide, without its images and capacity."""

    uid: str
    zone: ZoneName
    is_counted: bool
    """Whether it counts for the health of its zone."""
    ready: NodeCondition | None
    no_execute: frozenset[str]
    """Which of the taints not-ready and unreachable it has as NoExecute."""

    @property
    def ready_status(self) -> str:
        """Like a node that is silent, one that never reported is Unknown."""
        return UNKNOWN if self.ready is None else self.ready.status


def monitored_node(node: Node) -> MonitoredNode:
    """Return what decides of a Node."""
    labels = node.metadata.labels or {}
    return MonitoredNode(
        uid=node.metadata.uid,
        zone=(_first(labels, _REGION_LABELS), _first(labels, _ZONE_LABELS)),
        is_counted=_EXCLUDED_LABEL not in labels,
        ready=ready_condition(node.status.conditions),
        no_execute=no_execute_keys(node.spec.taints or ()),
    )


def _first(labels: dict[str, str], names: tuple[str, ...]) -> str:
    return next((labels[name] for name in names if labels.get(name)), "")
