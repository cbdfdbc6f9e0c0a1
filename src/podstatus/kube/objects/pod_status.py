"""Wire types of `v1.PodStatus`, the observed state of a pod: all of v1.36."""

from msgspec import field

from podstatus.kube.encoding.wire_struct import Int64, Wire, nil
from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.scalars.time import Time


class PodCondition(Wire, frozen=True, kw_only=True):
    type: str = field(default_factory=str)
    observed_generation: Int64 = 0
    status: str = field(default_factory=str)
    last_probe_time: Time = field(default_factory=Time)
    last_transition_time: Time = field(default_factory=Time)
    reason: str = ""
    message: str = ""


class HostIP(Wire, frozen=True, kw_only=True):
    ip: str = field(default_factory=str)


class PodIP(Wire, frozen=True, kw_only=True):
    ip: str = field(default_factory=str)


class ContainerStateWaiting(Wire, frozen=True, kw_only=True):
    reason: str = ""
    message: str = ""


class ContainerStateRunning(Wire, frozen=True, kw_only=True):
    started_at: Time = field(default_factory=Time)


class ContainerStateTerminated(Wire, frozen=True, kw_only=True):
    exit_code: int = field(default_factory=int)
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: Time = field(default_factory=Time)
    finished_at: Time = field(default_factory=Time)
    container_id: str = field(default="", name="containerID")


class ContainerState(Wire, frozen=True, kw_only=True):
    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ImageVolumeStatus(Wire, frozen=True, kw_only=True):
    image_ref: str = ""


class VolumeStatus(Wire, frozen=True, kw_only=True):
    image: ImageVolumeStatus | None = None


class VolumeMountStatus(Wire, frozen=True, kw_only=True):
    name: str = field(default_factory=str)
    mount_path: str = field(default_factory=str)
    read_only: bool = False
    recursive_read_only: str | None = None
    volume_status: VolumeStatus | None = None


class LinuxContainerUser(Wire, frozen=True, kw_only=True):
    uid: Int64 = field(default_factory=int)
    gid: Int64 = field(default_factory=int)
    supplemental_groups: tuple[Int64, ...] | None = None


class ContainerUser(Wire, frozen=True, kw_only=True):
    linux: LinuxContainerUser | None = None


class ResourceHealth(Wire, frozen=True, kw_only=True):
    resource_id: str = field(default_factory=str, name="resourceID")
    health: str = ""
    message: str | None = None


class ResourceStatus(Wire, frozen=True, kw_only=True):
    name: str = field(default_factory=str)
    resources: tuple[ResourceHealth, ...] | None = None


class ContainerStatus(Wire, frozen=True, kw_only=True):
    name: str = field(default_factory=str)
    state: ContainerState = field(default_factory=ContainerState)
    last_state: ContainerState = field(default_factory=ContainerState)
    ready: bool = field(default_factory=bool)
    restart_count: int = field(default_factory=int)
    image: str = field(default_factory=str)
    image_id: str = field(default_factory=str, name="imageID")
    container_id: str = field(default="", name="containerID")
    started: bool | None = None
    allocated_resources: dict[str, Quantity] | None = None
    resources: ResourceRequirements | None = None
    volume_mounts: tuple[VolumeMountStatus, ...] | None = None
    user: ContainerUser | None = None
    allocated_resources_status: tuple[ResourceStatus, ...] | None = None
    stop_signal: str | None = None


class PodResourceClaimStatus(Wire, frozen=True, kw_only=True):
    name: str = field(default_factory=str)
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(Wire, frozen=True, kw_only=True):
    container_name: str = field(default_factory=str)
    resource_name: str = field(default_factory=str)
    request_name: str = field(default_factory=str)


class PodExtendedResourceClaimStatus(Wire, frozen=True, kw_only=True):
    request_mappings: tuple[ContainerExtendedResourceRequest, ...] | None = field(
        default_factory=nil
    )
    resource_claim_name: str = field(default_factory=str)


class NodeAllocatableResourceClaimStatus(Wire, frozen=True, kw_only=True):
    resource_claim_name: str = field(default_factory=str)
    containers: tuple[str, ...] | None = None
    resources: dict[str, Quantity] | None = field(default_factory=nil)


class PodStatus(Wire, frozen=True, kw_only=True):
    observed_generation: Int64 = 0
    phase: str = ""
    conditions: tuple[PodCondition, ...] | None = None
    message: str = ""
    reason: str = ""
    nominated_node_name: str = ""
    host_ip: str = field(default="", name="hostIP")
    host_ips: tuple[HostIP, ...] | None = field(default=None, name="hostIPs")
    pod_ip: str = field(default="", name="podIP")
    pod_ips: tuple[PodIP, ...] | None = field(default=None, name="podIPs")
    start_time: Time | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    qos_class: str = ""
    ephemeral_container_statuses: tuple[ContainerStatus, ...] | None = None
    resize: str = ""
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] | None = None
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    allocated_resources: dict[str, Quantity] | None = None
    resources: ResourceRequirements | None = None
    node_allocatable_resource_claim_statuses: (
        tuple[NodeAllocatableResourceClaimStatus, ...] | None
    ) = None
