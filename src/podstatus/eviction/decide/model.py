"""The values that eviction decides with: signals, thresholds, usage, state and decisions.

Times are nanoseconds. All times of a state come from the same clock; the times of observations
may come from another, since they are only compared with each other.

Upstream: pkg/kubelet/eviction/types.go and api/types.go v1.36.4; usage: kubelet/pkg/apis/stats.
"""

from collections.abc import Mapping

import msgspec

from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.scalars.quantity import Quantity

Signal = str

MEMORY_AVAILABLE: Signal = "memory.available"
ALLOCATABLE_MEMORY_AVAILABLE: Signal = "allocatableMemory.available"
NODEFS_AVAILABLE: Signal = "nodefs.available"
NODEFS_INODES_FREE: Signal = "nodefs.inodesFree"
IMAGEFS_AVAILABLE: Signal = "imagefs.available"
IMAGEFS_INODES_FREE: Signal = "imagefs.inodesFree"
CONTAINERFS_AVAILABLE: Signal = "containerfs.available"
CONTAINERFS_INODES_FREE: Signal = "containerfs.inodesFree"
PID_AVAILABLE: Signal = "pid.available"

MEMORY_PRESSURE = "MemoryPressure"
DISK_PRESSURE = "DiskPressure"
PID_PRESSURE = "PIDPressure"
PRESSURE_CONDITIONS = (MEMORY_PRESSURE, DISK_PRESSURE, PID_PRESSURE)

MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
INODES = "inodes"
PIDS = "pids"

RESOURCE_BY_SIGNAL: Mapping[Signal, str] = {
    MEMORY_AVAILABLE: MEMORY,
    ALLOCATABLE_MEMORY_AVAILABLE: MEMORY,
    NODEFS_AVAILABLE: EPHEMERAL_STORAGE,
    NODEFS_INODES_FREE: INODES,
    IMAGEFS_AVAILABLE: EPHEMERAL_STORAGE,
    IMAGEFS_INODES_FREE: INODES,
    CONTAINERFS_AVAILABLE: EPHEMERAL_STORAGE,
    CONTAINERFS_INODES_FREE: INODES,
    PID_AVAILABLE: PIDS,
}
CONDITION_BY_SIGNAL: Mapping[Signal, str] = {
    signal: {MEMORY: MEMORY_PRESSURE, PIDS: PID_PRESSURE}.get(resource, DISK_PRESSURE)
    for signal, resource in RESOURCE_BY_SIGNAL.items()
}


class ThresholdValue(msgspec.Struct, frozen=True, kw_only=True):
    """An amount of a resource: absolute, or a share of its capacity."""

    quantity: Quantity | None = None
    share: float = 0.0
    """Between 0 and 1, with the precision of a 32-bit float. Ignored if there is a quantity."""


class EvictionThreshold(msgspec.Struct, frozen=True, kw_only=True):
    """The minimum that should be available of a resource."""

    signal: Signal
    value: ThresholdValue
    grace_period: int = 0
    """How long less is available before a pod is evicted. 0 for a hard threshold."""
    min_reclaim: ThresholdValue | None = None
    """How much more than `value` is reclaimed once the threshold is met."""

    @property
    def is_hard(self) -> bool:
        return self.grace_period == 0


Thresholds = tuple[EvictionThreshold, ...]


class FilesystemLayout(msgspec.Struct, frozen=True, kw_only=True):
    """Which filesystems are separate. By default images and containers are on nodefs."""

    dedicated_imagefs: bool = False
    """Images are on another filesystem than the kubelet's root directory."""
    split_containerfs: bool = False
    """Writable layers are on another filesystem than images: on nodefs."""


SINGLE_FILESYSTEM = FilesystemLayout()


class EarlyRecovery(msgspec.Struct, frozen=True, kw_only=True):
    """When DiskPressure ends before the transition period. Not in upstream.

    Only for disks: memory and process counts fluctuate, but disk space was freed by a deletion.
    """

    factor: int = 2
    """DiskPressure ends early when at least this many times each threshold is available."""
    hold_period: int = 5_000_000_000
    """How long it persists after such a recovery."""


class EvictionConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the eviction manager, parsed."""

    thresholds: Thresholds = ()
    pressure_transition_period: int = 300_000_000_000
    """How long a pressure condition persists after it was last observed."""
    max_pod_grace_period_seconds: int = 0
    """Maximum grace period of a pod that a soft threshold evicts."""
    local_storage_isolation: bool = True
    """Whether pods that exceed a local storage limit of their own are evicted."""
    layout: FilesystemLayout = SINGLE_FILESYSTEM
    early_recovery: EarlyRecovery | None = None
    """None: as upstream."""


class NodeMemoryUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Memory of the node or of all pods; None where unknown."""

    available_bytes: int | None = None
    working_set_bytes: int | None = None
    at: int | None = None
    """Time of the measurement. Without it, every observation counts as newer."""


class FilesystemUsage(msgspec.Struct, frozen=True, kw_only=True):
    """A filesystem, or the part of it that a container or volume uses; None where unknown."""

    available_bytes: int | None = None
    capacity_bytes: int | None = None
    used_bytes: int | None = None
    inodes: int | None = None
    inodes_free: int | None = None
    inodes_used: int | None = None
    at: int | None = None


class PidUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Process IDs of the node; None where unknown."""

    max_pid: int | None = None
    running: int | None = None
    at: int | None = None


class ContainerResourceUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Usage of one container; None where unknown."""

    name: str
    memory_working_set_bytes: int | None = None
    rootfs: FilesystemUsage | None = None
    logs: FilesystemUsage | None = None


class PodResourceUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Usage of one pod; None where unknown, which ranks like 0."""

    memory_working_set_bytes: int | None = None
    process_count: int | None = None
    ephemeral_storage_bytes: int | None = None
    """Containers, logs and local ephemeral volumes together."""
    containers: tuple[ContainerResourceUsage, ...] = ()
    volumes: Mapping[str, FilesystemUsage] = {}
    """By volume name, whatever the volume's type."""


class NodeResourceUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Usage of the node; None where unknown: signals without usage are not evaluated."""

    memory: NodeMemoryUsage | None = None
    pods_memory: NodeMemoryUsage | None = None
    """All pods together, against the allocatable memory."""
    nodefs: FilesystemUsage | None = None
    imagefs: FilesystemUsage | None = None
    containerfs: FilesystemUsage | None = None
    pids: PidUsage | None = None


class UsageSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Usage of the node and its pods. A pod without an entry ranks before all others."""

    node: NodeResourceUsage
    pods: Mapping[PodUID, PodResourceUsage] = {}


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """Available amount and capacity of a signal's resource."""

    available: int
    capacity: int
    at: int | None = None


Observations = Mapping[Signal, Observation]


class EvictionState(msgspec.Struct, frozen=True, kw_only=True):
    """What one cycle passes to the next. `EvictionState()` is the start."""

    node_conditions: tuple[str, ...] = ()
    """The pressure conditions that are True, in the order of `PRESSURE_CONDITIONS`."""
    conditions_observed_at: Mapping[str, int] = {}
    """When the pressure of each of `node_conditions` was last observed."""
    first_observed_at: Mapping[EvictionThreshold, int] = {}
    """Since when each threshold is met."""
    thresholds_met: Thresholds = ()
    """Thresholds met for their grace period, and not yet reclaimed."""
    observations: Observations = {}


class PodEviction(msgspec.Struct, frozen=True, kw_only=True):
    """A pod to evict, and what its status and event say."""

    pod: Pod
    signal: str
    """What the metric `kubelet_evictions` counts: a signal, or the name of a limit."""
    message: str
    """Message of the status and of the event. Ends in a space, as upstream's."""
    grace_period_seconds: int
    annotations: Mapping[str, str] = {}
    """Annotations of the event."""
    is_disruption: bool = False
    """Whether the status gets the DisruptionTarget condition: not for a limit of the pod's own."""


class ReclaimAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """The resource to reclaim in this cycle, and how."""

    threshold: EvictionThreshold
    resource: str
    thresholds: Thresholds
    """All thresholds for which pods are evicted now, in order of eviction priority."""
    node_reclaim: tuple[str, ...] = ()
    """What to delete first: `DELETE_UNUSED_CONTAINERS`, `DELETE_UNUSED_IMAGES`. Then observe again:
    no pod is evicted if `is_reclaimed`."""
    eviction: PodEviction | None = None
    """The pod to evict; None if all active pods are critical, or there are none."""

    @property
    def event_message(self) -> str:
        """Message of the Node's event `EvictionThresholdMet`."""
        return f"Attempting to reclaim {self.resource}"


class EvictionDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What to do in one cycle: `limit_evictions` if there are any, else `reclaim`."""

    state: EvictionState
    limit_evictions: tuple[PodEviction, ...] = ()
    """Pods that exceed a local storage limit of their own."""
    reclaim: ReclaimAttempt | None = None


DELETE_UNUSED_CONTAINERS = "DeleteAllUnusedContainers"
DELETE_UNUSED_IMAGES = "DeleteUnusedImages"
