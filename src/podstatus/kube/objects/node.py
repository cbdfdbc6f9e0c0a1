"""Wire types of `v1.Node`: all of v1.36's NodeSpec and NodeStatus."""

from msgspec import field

from podstatus.kube.encoding.wire_struct import Int64, Wire, nil
from podstatus.kube.objects.cluster import KubeObject
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.scalars.time import Time


class Taint(Wire, frozen=True, kw_only=True):
    key: str = field(default_factory=str)
    value: str = ""
    effect: str = field(default_factory=str)
    time_added: Time | None = None


class ConfigMapNodeConfigSource(Wire, frozen=True, kw_only=True):
    namespace: str = field(default_factory=str)
    name: str = field(default_factory=str)
    uid: str = ""
    resource_version: str = ""
    kubelet_config_key: str = field(default_factory=str)


class NodeConfigSource(Wire, frozen=True, kw_only=True):
    config_map: ConfigMapNodeConfigSource | None = None


class NodeSpec(Wire, frozen=True, kw_only=True):
    pod_cidr: str = field(default="", name="podCIDR")
    pod_cidrs: tuple[str, ...] | None = field(default=None, name="podCIDRs")
    provider_id: str = field(default="", name="providerID")
    unschedulable: bool = False
    taints: tuple[Taint, ...] | None = None
    config_source: NodeConfigSource | None = None
    external_id: str = field(default="", name="externalID")


class NodeCondition(Wire, frozen=True, kw_only=True):
    type: str = field(default_factory=str)
    status: str = field(default_factory=str)
    last_heartbeat_time: Time = field(default_factory=Time)
    last_transition_time: Time = field(default_factory=Time)
    reason: str = ""
    message: str = ""


class NodeAddress(Wire, frozen=True, kw_only=True):
    type: str = field(default_factory=str)
    address: str = field(default_factory=str)


class DaemonEndpoint(Wire, frozen=True, kw_only=True):
    port: int = field(default_factory=int, name="Port")


class NodeDaemonEndpoints(Wire, frozen=True, kw_only=True):
    kubelet_endpoint: DaemonEndpoint = field(default_factory=DaemonEndpoint)


class NodeSwapStatus(Wire, frozen=True, kw_only=True):
    capacity: Int64 | None = None


class NodeSystemInfo(Wire, frozen=True, kw_only=True):
    machine_id: str = field(default_factory=str, name="machineID")
    system_uuid: str = field(default_factory=str, name="systemUUID")
    boot_id: str = field(default_factory=str, name="bootID")
    kernel_version: str = field(default_factory=str)
    os_image: str = field(default_factory=str)
    container_runtime_version: str = field(default_factory=str)
    kubelet_version: str = field(default_factory=str)
    kube_proxy_version: str = field(default_factory=str)
    operating_system: str = field(default_factory=str)
    architecture: str = field(default_factory=str)
    swap: NodeSwapStatus | None = None


class ContainerImage(Wire, frozen=True, kw_only=True):
    names: tuple[str, ...] | None = field(default_factory=nil)
    size_bytes: Int64 = 0


class AttachedVolume(Wire, frozen=True, kw_only=True):
    name: str = field(default_factory=str)
    device_path: str = field(default_factory=str)


class NodeConfigStatus(Wire, frozen=True, kw_only=True):
    assigned: NodeConfigSource | None = None
    active: NodeConfigSource | None = None
    last_known_good: NodeConfigSource | None = None
    error: str = ""


class NodeRuntimeHandlerFeatures(Wire, frozen=True, kw_only=True):
    recursive_read_only_mounts: bool | None = None
    user_namespaces: bool | None = None


class NodeRuntimeHandler(Wire, frozen=True, kw_only=True):
    name: str = field(default_factory=str)
    features: NodeRuntimeHandlerFeatures | None = None


class NodeFeatures(Wire, frozen=True, kw_only=True):
    supplemental_groups_policy: bool | None = None


class NodeStatus(Wire, frozen=True, kw_only=True):
    capacity: dict[str, Quantity] | None = None
    allocatable: dict[str, Quantity] | None = None
    phase: str = ""
    conditions: tuple[NodeCondition, ...] | None = None
    addresses: tuple[NodeAddress, ...] | None = None
    daemon_endpoints: NodeDaemonEndpoints = field(default_factory=NodeDaemonEndpoints)
    node_info: NodeSystemInfo = field(default_factory=NodeSystemInfo)
    images: tuple[ContainerImage, ...] | None = None
    volumes_in_use: tuple[str, ...] | None = None
    volumes_attached: tuple[AttachedVolume, ...] | None = None
    config: NodeConfigStatus | None = None
    runtime_handlers: tuple[NodeRuntimeHandler, ...] | None = None
    features: NodeFeatures | None = None
    declared_features: tuple[str, ...] | None = None


class Node(KubeObject, frozen=True, kw_only=True):
    spec: NodeSpec = field(default_factory=NodeSpec)
    status: NodeStatus = field(default_factory=NodeStatus)
