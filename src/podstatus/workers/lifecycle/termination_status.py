"""What the status of a pod says that its node ends.

It is said when the containers are told to end, and kept back until they have. If all of them have
ended with exit code 0 then, the pod has succeeded, and the reason goes: that is meant so
(kubernetes#118310). That it was disrupted stays.

Upstream: the podStatusFn of killPods, nodeshutdown_manager.go v1.36.4.
"""

from msgspec import structs

from podstatus.kube.conditions import DISRUPTION_TARGET, replace_or_append_pod_condition
from podstatus.kube.objects.pod import Pod, is_terminal_phase
from podstatus.kube.objects.pod_status import PodCondition, PodStatus
from podstatus.status.decide.generate import condition_observed_generation
from podstatus.workers.lifecycle.state_machine import Eviction

TERMINATION_BY_KUBELET = "TerminationByKubelet"


def with_eviction(
    status: PodStatus, eviction: Eviction, pod: Pod, old_status: PodStatus | None = None
) -> PodStatus:
    """The status, when the containers are to end, with why. `old_status` is what was said before.

    A pod that has come to its end by itself keeps its reason; upstream writes over it.
    """
    if not eviction.reason or is_terminal_phase(status.phase):
        return status
    status = structs.replace(
        status, phase="Failed", reason=eviction.reason, message=eviction.message
    )
    if not eviction.is_disruption:
        return status
    generation = condition_observed_generation(pod.metadata.generation, old_status or pod.status)
    target = PodCondition(
        type=DISRUPTION_TARGET,
        status="True",
        reason=TERMINATION_BY_KUBELET,
        message=eviction.message,
        observed_generation=generation,
    )
    conditions = replace_or_append_pod_condition(status.conditions or (), target)
    return structs.replace(status, conditions=conditions)
