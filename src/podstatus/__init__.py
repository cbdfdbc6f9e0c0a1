"""The source of truth for pod status on a node: the kubelet's status manager in Python."""

from podstatus.kube.features import FeatureGates
from podstatus.kube.pod import Pod
from podstatus.kube.pod_status import PodCondition, PodStatus
from podstatus.pods.directory import PodDirectory
from podstatus.status.manager import StatusManager
from podstatus.status.policy import SyncPolicy

__version__ = "0.1.0"

__all__ = [
    "FeatureGates",
    "Pod",
    "PodCondition",
    "PodDirectory",
    "PodStatus",
    "StatusManager",
    "SyncPolicy",
    "__version__",
]
