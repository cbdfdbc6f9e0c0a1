"""The source of truth for pod status on a node: the kubelet's status manager in Python."""

from podstatus.checkpoint.errors import (
    CheckpointError,
    CheckpointWriteError,
    DamagedCheckpointError,
    UnreadableCheckpointError,
    UnsupportedStateError,
)
from podstatus.checkpoint.files import FileState
from podstatus.checkpoint.memory import MemoryState
from podstatus.kube.codec import DecodeError, decode, from_document, to_document
from podstatus.kube.errors import (
    ApiError,
    BusyError,
    ConflictError,
    GoneError,
    RejectedError,
    UnavailableError,
    api_error,
)
from podstatus.kube.features import FeatureGates
from podstatus.kube.pod import Pod
from podstatus.kube.pod_status import ContainerState, ContainerStatus, PodCondition, PodStatus
from podstatus.kube.quantity import Quantity
from podstatus.kube.times import Time
from podstatus.pods.directory import PodDirectory
from podstatus.pods.phase import get_phase
from podstatus.status.manager import StatusManager
from podstatus.status.policy import SyncPolicy

__version__ = "0.1.0"

__all__ = [
    "ApiError",
    "BusyError",
    "CheckpointError",
    "CheckpointWriteError",
    "ConflictError",
    "ContainerState",
    "ContainerStatus",
    "DamagedCheckpointError",
    "DecodeError",
    "FeatureGates",
    "FileState",
    "GoneError",
    "MemoryState",
    "Pod",
    "PodCondition",
    "PodDirectory",
    "PodStatus",
    "Quantity",
    "RejectedError",
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
    "get_phase",
    "to_document",
]
