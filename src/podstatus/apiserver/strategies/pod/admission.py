"""Pod admission: default tolerations, priority, and node checks for a resize.

Supports only the two built-in priority classes (system-cluster-critical, system-node-critical).

Upstream: plugin/pkg/admission/defaulttolerationseconds, priority, podresize and
nodedeclaredfeatures; component-helpers v0.36.4, nodedeclaredfeatures/features/inplacepodresize; all
v1.36.4, where the last two are on by default.
"""

from podstatus.apiserver.http import errors
from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.strategies.base import Document
from podstatus.kube.encoding.codec import from_document
from podstatus.kube.encoding.equality import semantic_equal
from podstatus.kube.objects.node import Node
from podstatus.kube.objects.pod import Pod
from podstatus.kube.pod_resources import pod_requests
from podstatus.kube.restart_policy import is_restartable_init_container
from podstatus.kube.scalars.go_text import go_quoted
from podstatus.kube.scalars.quantity import Quantity

_DEFAULT_TOLERATIONS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATION_SECONDS = 300
_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_PRIORITY_FIELDS = ("priority", "preemptionPolicy")


def admit_create(spec: Document) -> Document:
    """Return the spec of a new pod with priority, preemption policy and default tolerations set."""
    priority = _PRIORITIES.get(spec.get("priorityClassName", ""), 0)
    defaults = {"priority": priority, "preemptionPolicy": "PreemptLowerPriority"}
    return _with_tolerations(defaults | spec)


def admit_update(spec: Document, old: Document) -> Document:
    """Return the updated spec with the priority fields of the old one and default tolerations."""
    priority = {key: old[key] for key in _PRIORITY_FIELDS if key in old}
    return _with_tolerations(priority | spec)


def _with_tolerations(spec: Document) -> Document:
    tolerations = spec.get("tolerations") or []
    missing = [
        {
            "key": key,
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": _TOLERATION_SECONDS,
        }
        for key in _DEFAULT_TOLERATIONS
        if not any(_tolerates(toleration, key) for toleration in tolerations)
    ]
    return spec | {"tolerations": tolerations + missing} if missing else spec


def _tolerates(toleration: Document, key: str) -> bool:
    return (toleration.get("key") or key) == key and (
        toleration.get("effect") or "NoExecute"
    ) == "NoExecute"


POD_LEVEL_RESIZE = "InPlacePodLevelResourcesVerticalScaling"
INIT_CONTAINER_RESIZE = "InPlacePodVerticalScalingInitContainers"

_OS = "kubernetes.io/os"
_ZERO = Quantity("0")


def resize_error(
    new: Document, old: Document, node_document: Document | None
) -> StatusError | None:
    """Return the error that forbids a resize, or None.

    `node_document` is the pod's node, None if it does not exist. A pod without a node, or an update
    that changes no resources, is always allowed.
    """
    name = new["spec"].get("nodeName", "")
    if not name or new["metadata"].get("generation") == old["metadata"].get("generation"):
        return None
    pod, before = from_document(new, Pod), from_document(old, Pod)
    if node_document is None:
        return errors.forbidden("pods", pod.name, f"node {go_quoted(name)} not found")
    node = from_document(node_document, Node)
    return (
        _missing_feature_error(pod, before, node)
        or _platform_error(pod, node)
        or _capacity_error(pod, node)
    )


def _missing_feature_error(pod: Pod, before: Pod, node: Node) -> StatusError | None:
    """Check that the node declares the features that this kind of resize needs."""
    needed = []
    if not semantic_equal(pod.spec.resources, before.spec.resources):
        needed.append(POD_LEVEL_RESIZE)
    pairs = zip(pod.spec.init_containers or (), before.spec.init_containers or (), strict=True)
    if any(
        not is_restartable_init_container(was) and now.resources != was.resources
        for now, was in pairs
    ):
        needed.append(INIT_CONTAINER_RESIZE)
    lacking = [name for name in needed if name not in (node.status.declared_features or ())]
    if not lacking:
        return None
    why = f"pod update requires features {', '.join(lacking)} which are not available on node"
    return errors.forbidden("pods", pod.name, f"{why} {go_quoted(node.metadata.name)}")


def _platform_error(pod: Pod, node: Node) -> StatusError | None:
    system = (node.metadata.labels or {}).get(_OS, "linux")
    if system == "linux":
        return None
    where = f"node {go_quoted(node.metadata.name)} is {go_quoted(system)}"
    why = f"pod resize is only supported on linux nodes, {where}"
    return errors.forbidden("pods", pod.name, why, cause="UnsupportedPlatform")


def _capacity_error(pod: Pod, node: Node) -> StatusError | None:
    requests, allocatable = pod_requests(pod.spec), node.status.allocatable or {}
    shortages = []
    for name in ("cpu", "memory"):
        request, limit = requests.get(name, _ZERO), allocatable.get(name, _ZERO)
        if request.compare(limit) > 0:
            needed, free = (q.milli_value if name == "cpu" else q.value for q in (request, limit))
            shortages.append(f"{name}, requested: {needed}, allocatable: {free}")
    if not shortages:
        return None
    why = f"node didn't have enough allocatable resources: {'; '.join(shortages)}"
    return errors.forbidden("pods", pod.name, why, cause="NodeCapacity")
