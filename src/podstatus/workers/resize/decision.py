"""Decide whether a resize fits on the node, the order of pending resizes, and event messages.

A resize that does not fit is deferred, even if it is larger than the node: the API server rejects
those, and a node may grow. A resize is infeasible if the runtime cannot perform it.

Upstream: handlePodResourcesResize and sortPendingResizes, allocation/allocation_manager.go
v1.36.4; podResizesAdmitHandler, allocation/handlers.go; podResizeMessage, events/resize.go.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from podstatus.kube.encoding.codec import to_document
from podstatus.kube.objects.containers import Container, ResourceRequirements
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
    """The requested resources fit on the node."""


class ResizePending(msgspec.Struct, frozen=True, kw_only=True):
    """The resize waits; the pod keeps its allocation."""

    reason: str
    """Infeasible, or the admission reason."""
    message: str


ResizeDecision = ResizeAccepted | ResizePending


class ResizeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A pod with a pending resize."""

    pod: Pod
    """The pod with the requested resources."""
    allocated: Pod
    since: Time | None = None
    """Transition time of the PodResizePending condition; None if it is not set."""


def decide_resize(
    pod: Pod,
    allocated: Pod,
    *,
    node: Node,
    others: RequestedResources,
    max_pods: int,
    supports_resize: bool,
) -> ResizeDecision:
    """Decide a resize, given the resources that the `others` have.

    `supports_resize`: whether the runtime can resize running containers.
    """
    if not supports_resize and (name := _needs_in_place_resize(pod, allocated)):
        return ResizePending(
            reason=INFEASIBLE,
            message=f"The runtime cannot resize running containers, and {name} cannot be resized "
            "by a restart",
        )
    match admit(pod, node=node, others=others, max_pods=max_pods):
        case AdmissionRejected(reason=reason, message=message):
            return ResizePending(reason=reason, message=message)
    return ResizeAccepted()


def sort_pending_resizes(requests: Iterable[ResizeRequest]) -> list[PodUID]:
    """UIDs in the order to decide: decreases, then by priority, QoS class and waiting time."""
    return [request.pod.uid for request in sorted(requests, key=_rank)]


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
    """The pod or container that must be resized while it runs; empty if there is none."""
    if changed_resources(
        allocated.spec.resources or _NO_RESOURCES, pod.spec.resources or _NO_RESOURCES
    ):
        return "the pod as a whole"
    before = {c.name: c.resources for c in resizable_containers(allocated)}
    for container in resizable_containers(pod):
        changed = changed_resources(before[container.name], container.resources)
        # A restart for one resource applies all of them.
        if changed and not any(needs_restart(container, name) for name in changed):
            return f"container {container.name}"
    return ""


_GO_JSON_ESCAPES = (("&", "\\u0026"), ("<", "\\u003c"), (">", "\\u003e"))
"""encoding/json of Go escapes these for HTML by default."""


def resize_message(summary_text: str, pod: Pod, generation: int, error: str = "") -> str:
    """The message of an event about a resize of the pod to its current spec."""
    summary: dict[str, Any] = {}
    for key, containers in (
        ("initContainers", pod.spec.init_containers),
        ("containers", pod.spec.containers),
    ):
        if containers:
            summary[key] = _container_summaries(containers)
    summary["generation"] = generation
    if error:
        summary["error"] = error
    text = msgspec.json.encode(summary).decode()
    for plain, escaped in _GO_JSON_ESCAPES:
        text = text.replace(plain, escaped)
    return f"{summary_text}: {text}"


def _container_summaries(containers: Sequence[Container]) -> list[dict[str, Any]]:
    return [{"name": c.name, "resources": _sort_keys(to_document(c.resources))} for c in containers]


def _sort_keys(resources: dict[str, Any]) -> dict[str, Any]:
    return {
        key: dict(sorted(value.items())) if isinstance(value, dict) else value
        for key, value in resources.items()
    }
