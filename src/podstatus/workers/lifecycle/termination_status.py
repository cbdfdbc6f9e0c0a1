"""The status of a pod that the node terminates.

The status is set when the termination begins; the sync holds the terminal phase back until all
containers have exited. If all of them exit with code 0, the pod has succeeded and the reason is
dropped, as upstream intends (kubernetes#118310). The DisruptionTarget condition stays.

Upstream: the podStatusFn of killPods, nodeshutdown_manager.go v1.36.4.
"""

from msgspec import structs

from podstatus.kube.conditions import DISRUPTION_TARGET, replace_or_append_pod_condition
from podstatus.kube.objects.pod import Pod, is_terminal_phase
from podstatus.kube.objects.pod_status import PodCondition, PodStatus
from podstatus.status.decide.generate_conditions import condition_observed_generation
from podstatus.workers.lifecycle.state_machine import Eviction

TERMINATION_BY_KUBELET = "TerminationByKubelet"


def with_eviction(
    status: PodStatus, eviction: Eviction, pod: Pod, old_status: PodStatus | None = None
) -> PodStatus:
    """The status with the eviction's phase, reason and condition; `old_status` is the previous one.

    A status in a terminal phase is returned unchanged; upstream overwrites its reason.
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
