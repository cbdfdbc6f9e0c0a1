"""Whether the node of a pod could do a resize at all: asked before the resize is stored.

Upstream: plugin/pkg/admission/podresize and nodedeclaredfeatures; component-helpers v0.36.4,
nodedeclaredfeatures/features/inplacepodresize; all v1.36.4, where both are on by default.
"""

from podstatus.apiserver import problems
from podstatus.apiserver.problems import Problem
from podstatus.apiserver.strategy import Document
from podstatus.kube.encoding.codec import from_document
from podstatus.kube.encoding.equality import semantic_equal
from podstatus.kube.objects.node import Node
from podstatus.kube.objects.pod import Pod
from podstatus.kube.pod_resources import pod_requests
from podstatus.kube.restart_policy import is_restartable_init_container
from podstatus.kube.scalars.go_text import go_quoted
from podstatus.kube.scalars.quantity import Quantity

POD_LEVEL = "InPlacePodLevelResourcesVerticalScaling"
INIT_CONTAINERS = "InPlacePodVerticalScalingInitContainers"

_OS = "kubernetes.io/os"
_ZERO = Quantity("0")


def refused_resize(new: Document, old: Document, found: Document | None) -> Problem | None:
    """Why a resize cannot be, if it changes anything and the pod has a node: this, if it exists."""
    name = new["spec"].get("nodeName", "")
    if not name or new["metadata"].get("generation") == old["metadata"].get("generation"):
        return None
    pod, before = from_document(new, Pod), from_document(old, Pod)
    if found is None:
        return problems.forbidden("pods", pod.name, f"node {go_quoted(name)} not found")
    node = from_document(found, Node)
    return _undeclared(pod, before, node) or _unsupported(pod, node) or _too_large(pod, node)


def _undeclared(pod: Pod, before: Pod, node: Node) -> Problem | None:
    """Nodes say of newer kinds of a resize that they can do them."""
    needed = []
    if not semantic_equal(pod.spec.resources, before.spec.resources):
        needed.append(POD_LEVEL)
    pairs = zip(pod.spec.init_containers or (), before.spec.init_containers or (), strict=True)
    if any(
        not is_restartable_init_container(was) and now.resources != was.resources
        for now, was in pairs
    ):
        needed.append(INIT_CONTAINERS)
    lacking = [name for name in needed if name not in (node.status.declared_features or ())]
    if not lacking:
        return None
    why = f"pod update requires features {', '.join(lacking)} which are not available on node"
    return problems.forbidden("pods", pod.name, f"{why} {go_quoted(node.metadata.name)}")


def _unsupported(pod: Pod, node: Node) -> Problem | None:
    system = (node.metadata.labels or {}).get(_OS, "linux")
    if system == "linux":
        return None
    where = f"node {go_quoted(node.metadata.name)} is {go_quoted(system)}"
    why = f"pod resize is only supported on linux nodes, {where}"
    return problems.forbidden("pods", pod.name, why, cause="UnsupportedPlatform")


def _too_large(pod: Pod, node: Node) -> Problem | None:
    asked, allocatable = pod_requests(pod.spec), node.status.allocatable or {}
    told = []
    for name, count in (("cpu", _milli), ("memory", _whole)):
        wanted, most = asked.get(name, _ZERO), allocatable.get(name, _ZERO)
        if wanted.compare(most) > 0:
            told.append(f"{name}, requested: {count(wanted)}, allocatable: {count(most)}")
    if not told:
        return None
    why = f"node didn't have enough allocatable resources: {'; '.join(told)}"
    return problems.forbidden("pods", pod.name, why, cause="NodeCapacity")


def _milli(quantity: Quantity) -> int:
    return quantity.milli_value


def _whole(quantity: Quantity) -> int:
    return -(-quantity.nanos // 10**9)
