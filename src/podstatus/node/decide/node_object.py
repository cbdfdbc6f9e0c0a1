"""Build the desired Node object: a new one, or an update of an existing one.

Upstream: initialNode, updateNode and setNodeStatus, kubelet_node_status.go v1.36.4.
"""

import msgspec
from msgspec import structs

from podstatus.kube.objects.meta import ObjectMeta
from podstatus.kube.objects.node import (
    DaemonEndpoint,
    Node,
    NodeAddress,
    NodeDaemonEndpoints,
    NodeSpec,
    NodeStatus,
    NodeSystemInfo,
)
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.scalars.time import Time
from podstatus.node.decide.capacity import (
    HUGE_PAGES_PREFIX,
    Reserve,
    missing_capacity,
    node_allocatable,
    node_capacity,
    reserve_nothing,
)
from podstatus.node.decide.conditions import AlertCondition, NodeEvent, update_conditions
from podstatus.node.decide.readings import MachineReading
from podstatus.node.settings import NodeSettings

HOSTNAME_LABEL = "kubernetes.io/hostname"
WEBSOCKET_FEATURE = "ExtendWebSocketsToKubelet"
"""Declared if the agent listens: it supports WebSocket, but not SPDY."""
RESIZE_FEATURES = (
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
)
"""Declared if the runtime can resize: without these, the API server rejects resizes of pod-level
resources and of init containers."""
OS_LABEL = "kubernetes.io/os"
ARCH_LABEL = "kubernetes.io/arch"

_RECONCILED_LABELS = (
    HOSTNAME_LABEL,
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
    OS_LABEL,
    ARCH_LABEL,
    "node.kubernetes.io/windows-build",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
)
"""Labels that the agent owns on an adopted Node; all others belong to its admin."""


class NodeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Inputs of the node status at one moment."""

    info: NodeSystemInfo
    addresses: tuple[NodeAddress, ...]
    port: int = 0
    """Port that the agent listens on; 0: `NodeSettings.port`."""
    machine: MachineReading | None = None
    """None before the first reading."""
    pressures: tuple[str, ...] = ()
    """The pressure conditions that are True."""
    problems: tuple[str, ...] = ()
    """Reasons why the node is not Ready."""
    alert_conditions: tuple[AlertCondition, ...] = ()
    """Conditions of firing alerts."""
    now: Time


class DesiredNode(msgspec.Struct, frozen=True):
    """The desired Node, and the events to record."""

    node: Node
    events: tuple[NodeEvent, ...] = ()


class NodeBuilder:
    """Builds the Node from settings and facts. Stateless."""

    def __init__(self, settings: NodeSettings, reserve: Reserve = reserve_nothing) -> None:
        self._settings = settings
        self._reserve = reserve

    def new_node(self, facts: NodeFacts) -> DesiredNode:
        """The Node object to create at registration."""
        settings = self._settings
        bare = Node(
            kind="Node",
            api_version="v1",
            metadata=ObjectMeta(
                name=settings.name,
                labels=_labels(settings, facts.info),
                annotations=dict(settings.annotations) or None,
            ),
            spec=NodeSpec(provider_id=settings.provider_id, taints=settings.taints or None),
        )
        return self.updated(bare, facts)

    def adopted(self, node: Node, facts: NodeFacts) -> Node:
        """An existing Node with the agent's labels, and with capacity if it has none.

        Upstream: tryRegisterWithAPIServer. Taints are left unchanged, too.
        """
        new = self.new_node(facts).node
        labels, own = node.metadata.labels or {}, new.metadata.labels or {}
        labels = labels | {name: own[name] for name in _RECONCILED_LABELS if name in own}
        status = structs.replace(
            node.status,
            capacity=_without_huge_pages(node.status.capacity or new.status.capacity),
            allocatable=_without_huge_pages(node.status.allocatable or new.status.allocatable),
        )
        metadata = structs.replace(node.metadata, labels=labels)
        return structs.replace(node, metadata=metadata, status=status)

    def updated(self, node: Node, facts: NodeFacts) -> DesiredNode:
        """The Node with its current labels and status.

        Conditions, resources and labels of other clients stay.
        """
        # Keep amounts that cannot be read now, or that another client added.
        capacity = (node.status.capacity or {}) | node_capacity(self._settings, facts.machine)
        allocatable = node_allocatable(capacity, self._settings, self._reserve)
        conditions = update_conditions(
            self._settings.name,
            node.status.conditions or (),
            pressures=facts.pressures,
            problems=(*facts.problems, *missing_capacity(capacity, self._settings)),
            alert_conditions=facts.alert_conditions,
            now=facts.now,
        )
        port = facts.port or self._settings.port
        status = structs.replace(
            node.status,
            capacity=capacity,
            allocatable=allocatable,
            conditions=conditions.items,
            addresses=facts.addresses,
            daemon_endpoints=NodeDaemonEndpoints(kubelet_endpoint=DaemonEndpoint(port=port)),
            declared_features=_declared_features(self._settings, listens=port != 0),
            node_info=facts.info,
        )
        metadata = _with_own_labels(node.metadata, self._settings, facts.info)
        rebooted = _reboot_events(self._settings.name, node.status, facts.info)
        return DesiredNode(
            structs.replace(node, metadata=metadata, status=status),
            (*rebooted, *conditions.events),
        )


def _labels(settings: NodeSettings, info: NodeSystemInfo) -> dict[str, str]:
    return {
        HOSTNAME_LABEL: settings.effective_hostname,
        OS_LABEL: info.operating_system,
        ARCH_LABEL: info.architecture,
        "beta.kubernetes.io/os": info.operating_system,
        "beta.kubernetes.io/arch": info.architecture,
        **settings.labels,
        **settings.runtime_labels,
    }


def _declared_features(settings: NodeSettings, *, listens: bool) -> tuple[str, ...] | None:
    features = (WEBSOCKET_FEATURE,) if listens else ()
    return (*features, *(RESIZE_FEATURES if settings.supports_resize else ())) or None


def _with_own_labels(
    metadata: ObjectMeta, settings: NodeSettings, info: NodeSystemInfo
) -> ObjectMeta:
    """Restore the labels that the scheduler needs, if another client changed them."""
    labels = metadata.labels or {}
    own = {
        OS_LABEL: info.operating_system,
        ARCH_LABEL: info.architecture,
        **settings.runtime_labels,
    }
    if all(labels.get(name) == own[name] for name in own):
        return metadata
    return structs.replace(metadata, labels=labels | own)


def _reboot_events(name: str, status: NodeStatus, info: NodeSystemInfo) -> tuple[NodeEvent, ...]:
    before = status.node_info.boot_id
    if not before or not info.boot_id or before == info.boot_id:
        return ()
    message = f"Node {name} has been rebooted, boot id: {info.boot_id}"
    return (NodeEvent(reason="Rebooted", message=message, warning=True),)


def _without_huge_pages(amounts: dict[str, Quantity] | None) -> dict[str, Quantity] | None:
    """Without huge pages, which an earlier agent may have reported; this one offers none."""
    if amounts is None:
        return None
    return {name: q for name, q in amounts.items() if not name.startswith(HUGE_PAGES_PREFIX)}
