"""The pods/binding subresource: assign a pod to a node.

Upstream: BindingREST, pkg/registry/core/pod/storage/storage.go v1.36.4.
"""

from podstatus.apiserver.http.errors import StatusError, bad_request, conflict
from podstatus.apiserver.strategies.base import Document, with_meta
from podstatus.kube.scalars.go_text import go_quoted
from podstatus.kube.scalars.time import Time

_UNSCHEDULABLE = "Unschedulable"


def bind_pod(pod: Document, binding: Document, now: Time) -> Document:
    """Return the pod bound to the binding's target node.

    Raises StatusError: 422 for an invalid target, 409 if the pod is being deleted, already bound or
    gated.
    """
    target = binding.get("target") or {}
    _check_target(target)
    meta, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    why = _binding_error(meta, spec)
    if why:
        raise conflict("pods/binding", meta.get("name", ""), why)
    binding_meta = binding.get("metadata") or {}
    for key in ("labels", "annotations"):
        if binding_meta.get(key):
            # Go decodes a null map value as the empty string.
            added = {name: value or "" for name, value in binding_meta[key].items()}
            pod = with_meta(pod, **{key: (meta.get(key) or {}) | added})
    return pod | {
        "spec": spec | {"nodeName": target["name"]},
        "status": _mark_scheduled(pod.get("status") or {}, now),
    }


def check_binding_name(name: str, binding: Document) -> None:
    """Raise StatusError (400) unless the binding is for the pod of this name."""
    if (binding.get("metadata") or {}).get("name", "") != name:
        raise bad_request("name in URL does not match name in Binding object")


def _check_target(target: Document) -> None:
    # Upstream returns these as plain errors, which become 500; they are client errors, so 422.
    kind = target.get("kind")
    if kind and kind != "Node":
        why = f'Unsupported value: {go_quoted(kind)}: supported values: "Node", "<empty>"'
        raise StatusError(422, "Invalid", f"target.kind: {why}")
    if not target.get("name"):
        raise StatusError(422, "Invalid", "target.name: Required value")


def _binding_error(meta: Document, spec: Document) -> str:
    name = meta.get("name", "")
    if meta.get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f"pod {name} is already assigned to node {go_quoted(spec['nodeName'])}"
    if spec.get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def _mark_scheduled(status: Document, now: Time) -> Document:
    """Return the status with PodScheduled=True and without a nominated node."""
    others = {key: value for key, value in status.items() if key != "nominatedNodeName"}
    return _with_scheduled_condition(others, {"status": "True"}, now)


def mark_unschedulable(pod: Document, message: str, now: Time) -> Document:
    """Return the pod with PodScheduled=False, reason Unschedulable, and this message.

    Upstream: handleSchedulingFailure, pkg/scheduler/schedule_one.go v1.36.4.
    """
    generation = (pod.get("metadata") or {}).get("generation")
    observed = {"observedGeneration": generation} if generation else {}
    fields = {"status": "False", "reason": _UNSCHEDULABLE, "message": message}
    return pod | {
        "status": _with_scheduled_condition(pod.get("status") or {}, observed | fields, now)
    }


def unschedulable_message(pod: Document) -> str:
    """Return the message of an Unschedulable PodScheduled condition, or an empty string."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == _UNSCHEDULABLE:
            return str(condition.get("message", ""))
    return ""


def _with_scheduled_condition(status: Document, fields: Document, now: Time) -> Document:
    """Return the status with its PodScheduled condition set to these fields."""
    conditions = list(status.get("conditions") or [])
    types = [condition.get("type") for condition in conditions]
    times = {"lastProbeTime": None, "lastTransitionTime": now.wire}
    scheduled = {"type": "PodScheduled"} | fields | times
    if "PodScheduled" not in types:
        conditions.append(scheduled)
    else:
        index = types.index("PodScheduled")
        before = conditions[index]
        if before.get("status") == fields["status"]:
            scheduled["lastTransitionTime"] = before.get("lastTransitionTime")
        conditions[index] = scheduled
    return status | {"conditions": conditions}
