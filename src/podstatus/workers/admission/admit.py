"""Whether the node admits a pod that is assigned to it.

Checked first: the size limits (`pod_limits`). Then, in upstream's order: sysctls, operating system,
supplemental groups, resources, node selector and affinity, node name, host ports, NoExecute taints.
The first failed check is the reason. Pressure is checked by `eviction`. Not checked: devices,
AppArmor. There is no preemption for critical pods.

Upstream: predicateAdmitHandler, pkg/kubelet/lifecycle/predicate.go v1.36.4; rejectPod,
kubelet.go.
"""

from collections.abc import Iterator

import msgspec

from podstatus.events import reasons
from podstatus.kube.node_selection import matches_node
from podstatus.kube.objects.node import Node
from podstatus.kube.objects.pod import Pod, is_static_pod
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.kube.qos import get_pod_qos
from podstatus.kube.taints import tolerates_no_execute
from podstatus.workers.admission.pod_limits import find_limit_violation
from podstatus.workers.admission.resource_fit import (
    RequestedResources,
    has_free_ports,
    insufficient_resources,
)
from podstatus.workers.admission.sysctls import find_forbidden_sysctl

_OS_LABEL = "kubernetes.io/os"


class Admitted(msgspec.Struct, frozen=True):
    """The node accepts the pod."""


class AdmissionRejected(msgspec.Struct, frozen=True, kw_only=True):
    """The node rejects the pod, with this reason."""

    reason: str
    """Reason in the pod's status and event."""
    message: str
    """Message of the event."""


AdmissionResult = Admitted | AdmissionRejected


def admit(pod: Pod, *, node: Node, others: RequestedResources, max_pods: int) -> AdmissionResult:
    """Decide whether the pod fits, given the requests of the `others` active on the node.

    Pass a pod that already has an allocation with its allocation (`with_allocation`).
    """
    if (violation := find_limit_violation(pod)) is not None:
        return AdmissionRejected(reason=violation.reason, message=violation.message)
    if (forbidden := find_forbidden_sysctl(pod.spec)) is not None:
        message = f"forbidden sysctl: {forbidden}"
        return AdmissionRejected(reason=reasons.SYSCTL_FORBIDDEN, message=message)
    return next(_rejections(pod, node, others, max_pods), None) or Admitted()


def rejected_status(pod: Pod, rejected: AdmissionRejected) -> PodStatus:
    """The final status of a rejected pod: phase Failed."""
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
    """Requirements that the node cannot meet, whatever its load."""
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
    """The node's OS from its status: its label may be outdated for a while."""
    labels = node.metadata.labels or {}
    return node.status.node_info.operating_system or labels.get(_OS_LABEL, "") or "linux"


def _predicate_failure(predicate: str, message: str) -> AdmissionRejected:
    return AdmissionRejected(reason=predicate, message=f"Predicate {predicate} failed: {message}")
