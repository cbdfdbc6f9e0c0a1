"""How the controllers change the status of pods of nodes that are silent, tainted or gone.

Upstream: MarkPodsNotReady, pkg/controller/util/node/controller_utils.go; UpdatePodCondition,
pkg/api/v1/pod/util.go; addConditionAndDeletePod, pkg/controller/tainteviction/taint_eviction.go;
markFailedAndDeletePodWithCondition, pkg/controller/podgc/gc_controller.go; all v1.36.4.
"""

from podstatus.apiserver.strategies.base import Document
from podstatus.kube.objects.pod import is_terminal_phase
from podstatus.kube.scalars.time import Time

DELETION_BY_TAINT_MANAGER = {
    "reason": "DeletionByTaintManager",
    "message": "Taint manager: deleting due to NoExecute taint",
}
DELETION_BY_POD_GC = {
    "reason": "DeletionByPodGC",
    "message": "PodGC: node no longer exists",
}


def mark_not_ready(pod: Document, now: Time) -> Document:
    """Return the pod with Ready=False, its reason unchanged; the same pod if it is not Ready."""
    ready = _condition(pod, "Ready")
    if ready is None or ready.get("status") == "False":
        return pod
    return _with_condition(pod, ready | {"status": "False"}, now)


def mark_disruption(pod: Document, why: Document, now: Time) -> Document:
    """Return the pod with the condition DisruptionTarget, with this reason and message."""
    condition = {"type": "DisruptionTarget", "status": "True"} | why
    generation = pod["metadata"].get("generation")
    observed = {"observedGeneration": generation} if generation else {}
    before = _condition(pod, "DisruptionTarget") or {"lastProbeTime": None}
    return _with_condition(pod, before | condition | observed, now)


def mark_failed(pod: Document, now: Time, *, orphaned: bool) -> Document:
    """Return a pod that no node runs as Failed; the same pod if it is finished."""
    status = pod.get("status") or {}
    if is_terminal_phase(status.get("phase", "")):
        return pod
    if orphaned:
        pod = mark_disruption(pod, DELETION_BY_POD_GC, now)
    generation = pod["metadata"].get("generation")
    observed = {"observedGeneration": generation} if generation else {}
    return pod | {"status": pod.get("status", {}) | {"phase": "Failed"} | observed}


def _condition(pod: Document, kind: str) -> Document | None:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((it for it in conditions if it.get("type") == kind), None)


def _with_condition(pod: Document, condition: Document, now: Time) -> Document:
    status, kind = pod.get("status") or {}, condition["type"]
    conditions = list(status.get("conditions") or ())
    types = [it.get("type") for it in conditions]
    before = conditions[types.index(kind)] if kind in types else {}
    if before.get("status") != condition["status"]:
        condition = condition | {"lastTransitionTime": now.wire}
    if kind in types:
        conditions[types.index(kind)] = condition
    else:
        conditions.append(condition)
    return pod | {"status": status | {"conditions": conditions}}
