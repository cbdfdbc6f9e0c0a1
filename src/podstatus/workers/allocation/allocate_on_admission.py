"""Admit a new pod against the resources of the others, and reserve what it requests."""

from collections.abc import Callable

from podstatus.kube.objects.pod import Pod
from podstatus.workers.admission.admit import AdmissionRejected, AdmissionResult
from podstatus.workers.admission.resource_fit import RequestedResources
from podstatus.workers.allocation.allocations import AllocationManager
from podstatus.workers.allocation.request_totals import RequestTotals

DecideAdmission = Callable[[Pod, RequestedResources], AdmissionResult]
"""Decides whether a pod fits on the node, given the resources that other pods request."""


class PodAdmission:
    """Admits pods one at a time. Never blocks."""

    def __init__(
        self,
        allocations: AllocationManager,
        request_totals: RequestTotals,
        decide: DecideAdmission,
    ) -> None:
        self._allocations = allocations
        self._request_totals = request_totals
        self._decide = decide

    def admit(self, pod: Pod) -> AdmissionRejected | None:
        """Reserve the pod's resources, or return why it is rejected."""
        others = self._request_totals.excluding(pod.uid)
        result = self._decide(self._allocations.allocated(pod), others)
        if isinstance(result, AdmissionRejected):
            return result
        self._allocations.reserve(pod)
        return None
