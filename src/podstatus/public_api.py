"""The names that `podstatus` exports: the library."""

from podstatus import __version__
from podstatus.checkpoint.allocation_checkpoint import FileState, MemoryState
from podstatus.checkpoint.errors import (
    CheckpointError,
    CheckpointWriteError,
    DamagedCheckpointError,
    UnreadableCheckpointError,
    UnsupportedStateError,
)
from podstatus.checkpoint.formats import KUBELET_V1_28, KUBELET_V1_36
from podstatus.checkpoint.outbox_files import FileOutbox
from podstatus.kube.api_errors import (
    ApiError,
    BusyError,
    ConflictError,
    DeniedError,
    GoneError,
    RejectedError,
    UnavailableError,
    api_error,
)
from podstatus.kube.encoding.codec import DecodeError, decode, from_document, to_document
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.allocation import Allocations, PodResourceInfo
from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import (
    ContainerState,
    ContainerStatus,
    LinuxContainerUser,
    PodCondition,
    PodStatus,
)
from podstatus.kube.objects.runtime_facts import (
    ContainerFacts,
    ContainerRunState,
    NetworkMode,
    PodFacts,
    ResourceFacts,
    SandboxFacts,
    SandboxState,
)
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.scalars.time import UNSET_TIME, Time
from podstatus.pods.apply_probe_results import Prober, ProbeResults
from podstatus.pods.container_status import StartFailure
from podstatus.pods.generate_api_status import generate_api_pod_status
from podstatus.pods.phase import get_phase
from podstatus.pods.pod_manager import PodManager
from podstatus.status.counters import Counters, Counts
from podstatus.status.interface import Manager, PodStatusProvider
from podstatus.status.manager import StatusManager
from podstatus.status.policy import ParallelSyncOptions, SyncPolicy
from podstatus.status.ports import OutboxEntry
from podstatus.status.startup_latency_tracker import StartupLatencyTracker

__all__ = [
    "KUBELET_V1_28",
    "KUBELET_V1_36",
    "UNSET_TIME",
    "Allocations",
    "ApiError",
    "BusyError",
    "CheckpointError",
    "CheckpointWriteError",
    "ConflictError",
    "ContainerFacts",
    "ContainerRunState",
    "ContainerState",
    "ContainerStatus",
    "Counters",
    "Counts",
    "DamagedCheckpointError",
    "DecodeError",
    "DeniedError",
    "FeatureGates",
    "FileOutbox",
    "FileState",
    "GoneError",
    "LinuxContainerUser",
    "Manager",
    "MemoryState",
    "NetworkMode",
    "OutboxEntry",
    "ParallelSyncOptions",
    "Pod",
    "PodCondition",
    "PodFacts",
    "PodManager",
    "PodResourceInfo",
    "PodStatus",
    "PodStatusProvider",
    "ProbeResults",
    "Prober",
    "Quantity",
    "RejectedError",
    "ResourceFacts",
    "ResourceRequirements",
    "SandboxFacts",
    "SandboxState",
    "StartFailure",
    "StartupLatencyTracker",
    "StatusManager",
    "SyncPolicy",
    "Time",
    "UnavailableError",
    "UnreadableCheckpointError",
    "UnsupportedStateError",
    "__version__",
    "api_error",
    "decode",
    "from_document",
    "generate_api_pod_status",
    "get_phase",
    "to_document",
]
