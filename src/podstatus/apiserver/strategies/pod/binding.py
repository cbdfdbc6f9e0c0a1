"""Assigning a pod to a node.

Upstream: BindingREST, pkg/registry/core/pod/storage/storage.go v1.36.4.
"""

from podstatus.apiserver.http.errors import StatusError, bad_request, conflict
from podstatus.apiserver.strategies.base import Document, with_meta
from podstatus.kube.scalars.go_text import go_quoted
from podstatus.kube.scalars.time import Time

_UNSCHEDULABLE = "Unschedulable"


def bind_pod(pod: Document, binding: Document, now: Time) -> Document:
    """The pod on the node that the binding names. Raises Problem if it cannot go there."""
    target = binding.get("target") or {}
    _check_target(target)
    meta, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    why = _binding_error(meta, spec)
    if why:
        raise conflict("pods/binding", meta.get("name", ""), why)
    given = binding.get("metadata") or {}
    for key in ("labels", "annotations"):
        if given.get(key):
            # Go reads null as the empty text.
            added = {name: value or "" for name, value in given[key].items()}
            pod = with_meta(pod, **{key: (meta.get(key) or {}) | added})
    return pod | {
        "spec": spec | {"nodeName": target["name"]},
        "status": _mark_scheduled(pod.get("status") or {}, now),
    }


def check_binding_name(name: str, binding: Document) -> None:
    """Raise Problem unless the binding is one for the pod of this name."""
    if (binding.get("metadata") or {}).get("name", "") != name:
        raise bad_request("name in URL does not match name in Binding object")


def _check_target(target: Document) -> None:
    # Upstream returns these as plain errors, which become internal ones; but the client erred.
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
    """The status with its PodScheduled condition True."""
    kept = {key: value for key, value in status.items() if key != "nominatedNodeName"}
    return _with_scheduled_condition(kept, {"status": "True"}, now)


def mark_unschedulable(pod: Document, message: str, now: Time) -> Document:
    """The pod with its PodScheduled condition saying that it fits nowhere.

    Upstream: handleSchedulingFailure, pkg/scheduler/schedule_one.go v1.36.4.
    """
    generation = (pod.get("metadata") or {}).get("generation")
    observed = {"observedGeneration": generation} if generation else {}
    said = {"status": "False", "reason": _UNSCHEDULABLE, "message": message}
    return pod | {
        "status": _with_scheduled_condition(pod.get("status") or {}, observed | said, now)
    }


def unschedulable_message(pod: Document) -> str:
    """Why the pod fits nowhere, as its PodScheduled condition says; empty if it does not say so."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == _UNSCHEDULABLE:
            return str(condition.get("message", ""))
    return ""


def _with_scheduled_condition(status: Document, fields: Document, now: Time) -> Document:
    """The status with this said in its PodScheduled condition."""
    conditions = list(status.get("conditions") or [])
    types = [condition.get("type") for condition in conditions]
    times = {"lastProbeTime": None, "lastTransitionTime": now.wire}
    told = {"type": "PodScheduled"} | fields | times
    if "PodScheduled" not in types:
        conditions.append(told)
    else:
        index = types.index("PodScheduled")
        before = conditions[index]
        if before.get("status") == fields["status"]:
            told["lastTransitionTime"] = before.get("lastTransitionTime")
        conditions[index] = told
    return status | {"conditions": conditions}
