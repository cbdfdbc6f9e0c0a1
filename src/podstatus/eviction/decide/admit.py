"""Whether a pod is rejected because the node is under pressure.

Upstream: Admit, pkg/kubelet/eviction/eviction_manager.go v1.36.4.
"""

from collections.abc import Sequence

import msgspec

from podstatus.eviction.decide.messages import REASON
from podstatus.eviction.decide.model import MEMORY_PRESSURE
from podstatus.kube.objects.node import Taint
from podstatus.kube.objects.pod import Pod, is_critical_pod
from podstatus.kube.qos import BEST_EFFORT, get_pod_qos
from podstatus.kube.taints import is_taint_tolerated

MEMORY_PRESSURE_TAINT = Taint(key="node.kubernetes.io/memory-pressure", effect="NoSchedule")


class PressureRejection(msgspec.Struct, frozen=True):
    """The pod is rejected, with this reason and message."""

    reason: str
    message: str


def reject_under_pressure(pod: Pod, node_conditions: Sequence[str]) -> PressureRejection | None:
    """Return why the pod is rejected under these pressure conditions; None if it is admitted.

    Memory pressure alone rejects BestEffort pods that do not tolerate its taint; any other
    pressure rejects all pods but critical ones.
    """
    if not node_conditions or is_critical_pod(pod):
        return None
    if list(node_conditions) == [MEMORY_PRESSURE] and _tolerates_memory_pressure(pod):
        return None
    listed = " ".join(node_conditions)
    return PressureRejection(REASON, f"The node had condition: [{listed}]. ")


def _tolerates_memory_pressure(pod: Pod) -> bool:
    return get_pod_qos(pod) != BEST_EFFORT or is_taint_tolerated(
        MEMORY_PRESSURE_TAINT, pod.spec.tolerations or ()
    )
