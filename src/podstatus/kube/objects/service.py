"""Service (v1): the ports and addresses at which a set of pods can be reached."""

from msgspec import field

from podstatus.kube.encoding.wire_struct import Int64, Wire
from podstatus.kube.objects.cluster import KubeObject
from podstatus.kube.scalars.time import Time

NO_CLUSTER_IP = "None"
"""The `clusterIP` of a headless Service."""


class ServicePort(Wire, frozen=True, kw_only=True):
    name: str = ""
    protocol: str = ""
    app_protocol: str | None = None
    port: int = field(default_factory=int)
    target_port: int | str = field(default_factory=int)
    node_port: int = 0


class ClientIPConfig(Wire, frozen=True, kw_only=True):
    timeout_seconds: int | None = None


class SessionAffinityConfig(Wire, frozen=True, kw_only=True):
    client_ip: ClientIPConfig | None = field(default=None, name="clientIP")


class ServiceSpec(Wire, frozen=True, kw_only=True):
    ports: tuple[ServicePort, ...] | None = None
    selector: dict[str, str] | None = None
    cluster_ip: str = field(default="", name="clusterIP")
    cluster_ips: tuple[str, ...] | None = field(default=None, name="clusterIPs")
    type: str = ""
    external_ips: tuple[str, ...] | None = field(default=None, name="externalIPs")
    session_affinity: str = ""
    load_balancer_ip: str = field(default="", name="loadBalancerIP")
    load_balancer_source_ranges: tuple[str, ...] | None = None
    external_name: str = ""
    external_traffic_policy: str = ""
    health_check_node_port: int = 0
    publish_not_ready_addresses: bool = False
    session_affinity_config: SessionAffinityConfig | None = None
    ip_families: tuple[str, ...] | None = None
    ip_family_policy: str | None = None
    allocate_load_balancer_node_ports: bool | None = None
    load_balancer_class: str | None = None
    internal_traffic_policy: str | None = None
    traffic_distribution: str | None = None


class PortStatus(Wire, frozen=True, kw_only=True):
    port: int = field(default_factory=int)
    protocol: str = field(default_factory=str)
    error: str | None = None


class LoadBalancerIngress(Wire, frozen=True, kw_only=True):
    ip: str = ""
    hostname: str = ""
    ip_mode: str | None = None
    ports: tuple[PortStatus, ...] | None = None


class LoadBalancerStatus(Wire, frozen=True, kw_only=True):
    ingress: tuple[LoadBalancerIngress, ...] | None = None


class Condition(Wire, frozen=True, kw_only=True):
    """A condition as `metav1` defines it; pods, nodes and namespaces have types of their own."""

    type: str = field(default_factory=str)
    status: str = field(default_factory=str)
    observed_generation: Int64 = 0
    last_transition_time: Time = field(default_factory=Time)
    reason: str = field(default_factory=str)
    message: str = field(default_factory=str)


class ServiceStatus(Wire, frozen=True, kw_only=True):
    load_balancer: LoadBalancerStatus = field(default_factory=LoadBalancerStatus)
    conditions: tuple[Condition, ...] | None = None


class Service(KubeObject, frozen=True, kw_only=True):
    spec: ServiceSpec = field(default_factory=ServiceSpec)
    status: ServiceStatus = field(default_factory=ServiceStatus)
