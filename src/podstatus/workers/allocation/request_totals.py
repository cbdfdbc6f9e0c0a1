"""The running sum of the requests of all active pods, and admission of a new pod beside them.

A starting node receives all of its pods at once. Summing up the others for each of them would block
the event loop for minutes with some thousand pods.
"""

from collections import Counter
from collections.abc import Callable

from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.workers.admission.admit import AdmissionRejected, AdmissionResult
from podstatus.workers.admission.resource_fit import HostPort, RequestedResources, sum_requests
from podstatus.workers.allocation.allocations import AllocationManager
from podstatus.workers.lifecycle.pod_registry import PodRegistry

_NONE = RequestedResources()


class RequestTotals:
    """Recomputes only the pods that have changed since the last query. Not thread-safe."""

    def __init__(self, registry: PodRegistry, allocations: AllocationManager) -> None:
        self._registry = registry
        self._allocations = allocations
        self._by_pod: dict[PodUID, RequestedResources] = {}
        self._amounts: Counter[str] = Counter()
        self._ports: Counter[HostPort] = Counter()
        self._dirty = {lifecycle.uid for lifecycle in registry.all()}
        registry.add_listener(self._dirty.add)
        allocations.add_listener(self._dirty.add)

    def excluding(self, uid: PodUID) -> RequestedResources:
        """The reserved resources of all active pods except this one."""
        self._refresh()
        own = self._by_pod.get(uid, _NONE)
        own_ports = Counter(own.ports)
        return RequestedResources(
            pods=len(self._by_pod) - own.pods,
            amounts={name: n - own.amounts.get(name, 0) for name, n in self._amounts.items()},
            ports=tuple(port for port, n in self._ports.items() if n > own_ports[port]),
        )

    def _refresh(self) -> None:
        for uid in tuple(self._dirty):
            pod = self._registry.active_pod(uid)
            requests = None if pod is None else sum_requests([self._allocations.reserved(pod).spec])
            self._replace(uid, requests)
            self._dirty.discard(uid)

    def _replace(self, uid: PodUID, requests: RequestedResources | None) -> None:
        before = self._by_pod.pop(uid, _NONE)
        self._amounts.subtract(before.amounts)
        self._ports.subtract(before.ports)
        if requests is not None:
            self._by_pod[uid] = requests
            self._amounts.update(requests.amounts)
            self._ports.update(requests.ports)
        for port in before.ports:
            if not self._ports[port]:
                del self._ports[port]


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
