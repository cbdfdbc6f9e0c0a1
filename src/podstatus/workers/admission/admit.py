"""Whether a node takes a pod that was given to it.

Looked at first: its size (`pod_limits`). Then, in upstream's order: the operating system,
supplemental groups, room, node selector and affinity, node name, host ports, taints of effect
NoExecute. Who objects first speaks. Not looked at: pressure, devices, sysctls, AppArmor; and no
other pod is ended to make room for a critical one.

Upstream: predicateAdmitHandler, pkg/kubelet/lifecycle/predicate.go v1.36.4; rejectPod,
kubelet.go.
"""

from collections.abc import Iterator

import msgspec

from podstatus.kube.node_selection import matches_node, tolerates_no_execute
from podstatus.kube.objects.node import Node
from podstatus.kube.objects.pod import Pod, is_static_pod
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.kube.qos import get_pod_qos
from podstatus.workers.admission.host_ports import has_free_ports
from podstatus.workers.admission.pod_limits import find_limit_violation
from podstatus.workers.admission.resource_fit import RequestedResources, insufficient_resources

_OS_LABEL = "kubernetes.io/os"


class Admitted(msgspec.Struct, frozen=True):
    """The node takes the pod."""


class AdmissionRejected(msgspec.Struct, frozen=True, kw_only=True):
    """The node does not take the pod."""

    reason: str
    """Of the pod's status and of its event."""
    message: str
    """The event's text."""


AdmissionResult = Admitted | AdmissionRejected


def admit(pod: Pod, *, node: Node, others: RequestedResources, max_pods: int) -> AdmissionResult:
    """Whether the pod fits beside what others have that are active on the node.

    Of a pod that was granted resources before, give the allocation (`with_allocation`).
    """
    if (excess := find_limit_violation(pod)) is not None:
        return AdmissionRejected(reason=excess.reason, message=excess.message)
    objections = _rejections(pod, node, others, max_pods)
    return next(objections, None) or Admitted()


def rejected_status(pod: Pod, rejected: AdmissionRejected) -> PodStatus:
    """The status of a pod that was not taken: it has failed, and there is nothing more to say."""
    return PodStatus(
        qos_class=get_pod_qos(pod),
        phase="Failed",
        reason=rejected.reason,
        message=f"Pod was rejected: {rejected.message}",
    )


def _rejections(
    pod: Pod, node: Node, others: RequestedResources, max_pods: int
) -> Iterator[AdmissionRejected]:
    yield from _unsupported(pod, node)
    for shortage in insufficient_resources(pod.spec, node=node, others=others, max_pods=max_pods):
        yield AdmissionRejected(reason=f"OutOf{shortage.resource}", message=shortage.message)
    if not matches_node(pod.spec, node.metadata.name, node.metadata.labels or {}):
        yield _predicate_failure(
            "NodeAffinity", "node(s) didn't match Pod's node affinity/selector"
        )
    if pod.spec.node_name not in ("", node.metadata.name):
        yield _predicate_failure("NodeName", "node(s) didn't match the requested node name")
    if not has_free_ports(pod.spec, others.ports):
        yield _predicate_failure(
            "NodePorts", "node(s) didn't have free ports for the requested pod ports"
        )
    if not is_static_pod(pod) and not tolerates_no_execute(pod.spec, node):
        yield _predicate_failure(
            "TaintToleration", "node(s) had taints that the pod didn't tolerate"
        )


def _unsupported(pod: Pod, node: Node) -> Iterator[AdmissionRejected]:
    """What the node cannot do, however empty it is."""
    system = _operating_system(node)
    if (pod.metadata.labels or {}).get(_OS_LABEL, system) != system:
        yield AdmissionRejected(
            reason="PodOSSelectorNodeLabelDoesNotMatch",
            message="Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
        )
    if pod.spec.os is not None and pod.spec.os.name != system:
        yield AdmissionRejected(
            reason="PodOSNotSupported",
            message="Failed to admit pod as the OS field doesn't match node OS",
        )
    context, features = pod.spec.security_context, node.status.features
    strict = context is not None and context.supplemental_groups_policy == "Strict"
    if strict and not (features is not None and features.supplemental_groups_policy):
        yield AdmissionRejected(
            reason="SupplementalGroupsPolicyNotSupported",
            message="SupplementalGroupsPolicy=Strict is not supported in this node",
        )


def _operating_system(node: Node) -> str:
    """What the node runs on; its label may say something else for a while."""
    labels = node.metadata.labels or {}
    return node.status.node_info.operating_system or labels.get(_OS_LABEL, "") or "linux"


def _predicate_failure(predicate: str, message: str) -> AdmissionRejected:
    return AdmissionRejected(reason=predicate, message=f"Predicate {predicate} failed: {message}")
