"""Whether a pod bears the taints of a node.

Upstream: ToleratesTaint, k8s.io/api v0.36.4, core/v1/toleration.go, with the comparison
operators off, as they are by default.
"""

from collections.abc import Iterable

from podstatus.kube.node import Node, Taint
from podstatus.kube.pod_spec import PodSpec, Toleration

NO_EXECUTE = "NoExecute"


def tolerates_no_execute(spec: PodSpec, node: Node) -> bool:
    """Whether the pod may stay on the node; taints against scheduling do not matter any more."""
    taints = [taint for taint in node.spec.taints or () if taint.effect == NO_EXECUTE]
    return all(is_tolerated(taint, spec.tolerations or ()) for taint in taints)


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Whether one of these tolerations is about this taint."""
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"
