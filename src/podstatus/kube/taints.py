"""Whether a pod tolerates the taints of a node.

Upstream: ToleratesTaint, k8s.io/api v0.36.4, core/v1/toleration.go, with the comparison operators
off, as they are by default.
"""

from collections.abc import Iterable

from podstatus.kube.objects.node import Node, Taint
from podstatus.kube.objects.pod_spec import PodSpec, Toleration

NO_EXECUTE = "NoExecute"


def tolerates_no_execute(spec: PodSpec, node: Node) -> bool:
    """Return whether the pod tolerates all NoExecute taints; other effects do not evict."""
    taints = [taint for taint in node.spec.taints or () if taint.effect == NO_EXECUTE]
    return all(is_taint_tolerated(taint, spec.tolerations or ()) for taint in taints)


def is_taint_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Return whether one of these tolerations matches the taint."""
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"
