"""Whether a node grants other resources to a pod that it has, and who is asked first.

A resize that does not fit waits, even if it is larger than the node: the API server refuses
those, and a node may grow. It can never be done if the runtime cannot do it.

Upstream: handlePodResourcesResize and sortPendingResizes, allocation/allocation_manager.go
v1.36.4; podResizesAdmitHandler, allocation/handlers.go.
"""

from collections.abc import Iterable

import msgspec

from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.node import Node
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.pod_resources import pod_requests
from podstatus.kube.qos import GUARANTEED, get_pod_qos
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.scalars.time import Time
from podstatus.status.decide.resize import INFEASIBLE
from podstatus.workers.admission.admit import AdmissionRejected, admit
from podstatus.workers.admission.resource_fit import RequestedResources
from podstatus.workers.resize.plan import changed_resources, needs_restart, resizable_containers

_NO_RESOURCES = ResourceRequirements()
_ZERO = Quantity("0")


class ResizeAccepted(msgspec.Struct, frozen=True):
    """The pod gets what it asks for."""


class ResizePending(msgspec.Struct, frozen=True, kw_only=True):
    """The pod keeps what it has."""

    reason: str
    """Infeasible, or what is missing now."""
    message: str


ResizeDecision = ResizeAccepted | ResizePending


class ResizeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that waits for other resources."""

    pod: Pod
    """As it asks."""
    allocated: Pod
    since: Time | None = None
    """Since when it is shown that it waits; None if it never was."""


def decide_resize(
    pod: Pod,
    allocated: Pod,
    *,
    node: Node,
    others: RequestedResources,
    max_pods: int,
    supports_resize: bool,
) -> ResizeDecision:
    """Whether the pod gets what it asks for, beside what the others hold.

    `supports_resize`: whether the runtime can give other resources to what runs.
    """
    if not supports_resize and (name := _needs_in_place_resize(pod, allocated)):
        return ResizePending(
            reason=INFEASIBLE,
            message=f"The runtime cannot resize running containers, and {name} is not to be "
            "restarted for it",
        )
    match admit(pod, node=node, others=others, max_pods=max_pods):
        case AdmissionRejected(reason=reason, message=message):
            return ResizePending(reason=reason, message=message)
    return ResizeAccepted()


def sort_pending_resizes(requests: Iterable[ResizeRequest]) -> list[PodUID]:
    """Who is asked first: who gives back, then by priority, class, and how long it has waited."""
    return [one.pod.uid for one in sorted(requests, key=_rank)]


def _rank(request: ResizeRequest) -> tuple[bool, int, bool, bool, int]:
    return (
        _is_increase(request),
        -(request.pod.spec.priority or 0),
        get_pod_qos(request.pod) != GUARANTEED,
        request.since is None,
        request.since or 0,
    )


def _is_increase(request: ResizeRequest) -> bool:
    before, after = pod_requests(request.allocated.spec), pod_requests(request.pod.spec)
    return any(
        after.get(name, _ZERO).compare(before.get(name, _ZERO)) > 0 for name in ("cpu", "memory")
    )


def _needs_in_place_resize(pod: Pod, allocated: Pod) -> str:
    """What would have to be resized while it runs; empty if there is nothing of the kind."""
    if changed_resources(
        allocated.spec.resources or _NO_RESOURCES, pod.spec.resources or _NO_RESOURCES
    ):
        return "the pod as a whole"
    before = {c.name: c.resources for c in resizable_containers(allocated)}
    for container in resizable_containers(pod):
        changed = changed_resources(before[container.name], container.resources)
        # One restart for any of them gives it all of them.
        if changed and not any(needs_restart(container, name) for name in changed):
            return f"container {container.name}"
    return ""
