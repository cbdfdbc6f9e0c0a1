"""Limits of containers, and who is killed first when the machine runs out of memory.

Upstream: calculateLinuxResources, kuberuntime_container_linux.go; GetContainerOOMScoreAdjust,
pkg/kubelet/qos/policy.go; v1.36.4.
"""

from podstatus.kube.objects.containers import Container, ResourceRequirements
from podstatus.kube.objects.pod import Pod, is_critical_pod
from podstatus.kube.qos import BEST_EFFORT, GUARANTEED, get_pod_qos
from podstatus.kube.restart_policy import is_restartable_init_container
from podstatus.kube.scalars.quantity import Quantity
from podstatus.runtime.cpu_and_memory_limits import CPU_PERIOD_MICROSECONDS, container_limits
from podstatus.runtime.cri.api.resources import CriLinuxContainerResources

_GUARANTEED_SCORE, _BEST_EFFORT_SCORE = -997, 1000
_NODE_CRITICAL = "system-node-critical"
_ZERO = Quantity("0")


def linux_resources(
    pod: Pod, container: Container, *, memory_capacity: int
) -> CriLinuxContainerResources:
    """Return a container's limits; `memory_capacity` is the machine's memory in bytes."""
    limits = container_limits(container.resources)
    return CriLinuxContainerResources(
        cpu_period=CPU_PERIOD_MICROSECONDS,
        cpu_quota=limits.cpu_quota or 0,
        cpu_shares=limits.cpu_shares,
        memory_limit_in_bytes=limits.memory_bytes or 0,
        oom_score_adj=oom_score_adj(pod, container, memory_capacity),
    )


def oom_score_adj(pod: Pod, container: Container, memory_capacity: int) -> int:
    """Return the adjustment: the more of the machine's memory is requested, the lower."""
    qos = get_pod_qos(pod)
    is_node_critical = is_critical_pod(pod) and pod.spec.priority_class_name == _NODE_CRITICAL
    if is_node_critical or qos == GUARANTEED:
        return _GUARANTEED_SCORE
    if qos == BEST_EFFORT:
        return _BEST_EFFORT_SCORE
    score = _score(_memory(container.resources), memory_capacity)
    if _is_sidecar(pod, container):
        # At most that of the regular containers, which need it.
        regular = (_memory(other.resources) for other in pod.spec.containers or ())
        score = min(score, _score(min(regular, default=0), memory_capacity))
    # Between those of guaranteed and of best-effort pods.
    return min(max(score, 1000 + _GUARANTEED_SCORE), _BEST_EFFORT_SCORE - 1)


def _score(memory: int, capacity: int) -> int:
    return 1000 - 1000 * memory // capacity


def _memory(resources: ResourceRequirements) -> int:
    return (resources.requests or {}).get("memory", _ZERO).value


def _is_sidecar(pod: Pod, container: Container) -> bool:
    names = {init.name for init in pod.spec.init_containers or ()}
    return container.name in names and is_restartable_init_container(container)
