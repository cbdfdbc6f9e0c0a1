"""Wire type of `v1.Pod`, and its origin according to the metadata."""

from typing import NewType

from msgspec import field

from podstatus.kube.encoding.frozen_copy import require_type
from podstatus.kube.objects.cluster import KubeObject
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.pod_status import PodStatus

PodUID = NewType("PodUID", str)
"""The UID by which the node knows a pod (a static pod's own UID)."""

ApiUID = NewType("ApiUID", str)
"""The UID of the object in the API server (a static pod's mirror pod)."""

CONFIG_SOURCE = "kubernetes.io/config.source"
CONFIG_MIRROR = "kubernetes.io/config.mirror"
API_SOURCE = "api"


class Pod(KubeObject, frozen=True, kw_only=True):
    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)

    @property
    def uid(self) -> PodUID:
        """`metadata.uid` as the UID by which the node knows the pod."""
        return PodUID(self.metadata.uid)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def full_name(self) -> tuple[str, str]:
        """Namespace and name, which a static pod and its mirror pod share."""
        return self.metadata.namespace, self.metadata.name


def is_static_pod(pod: Pod) -> bool:
    """Return whether the pod came from a file or a URL instead of the API server."""
    source = (pod.metadata.annotations or {}).get(CONFIG_SOURCE)
    return source is not None and source != API_SOURCE


def is_mirror_pod(pod: Pod) -> bool:
    return CONFIG_MIRROR in (pod.metadata.annotations or {})


SYSTEM_CRITICAL_PRIORITY = 2_000_000_000
"""Upstream: SystemCriticalPriority, pkg/apis/scheduling/types.go."""


def is_critical_pod(pod: Pod) -> bool:
    """Return whether the node must not end the pod by itself: static, mirror, critical priority.

    Upstream: IsCriticalPod, pkg/kubelet/types/pod_update.go v1.36.4.
    """
    priority = pod.spec.priority or 0
    return is_static_pod(pod) or is_mirror_pod(pod) or priority >= SYSTEM_CRITICAL_PRIORITY


POD_PHASES = ("Pending", "Running", "Succeeded", "Failed")
"""The phases that a kubelet sets. Unknown is reserved for others, and deprecated."""


def is_terminal_phase(phase: str) -> bool:
    """Return whether the phase is Succeeded or Failed."""
    return phase in ("Succeeded", "Failed")


def check_uid(uid: object) -> None:
    """Raise TypeError unless the UID is a string, ValueError if it is empty."""
    if not isinstance(uid, str):
        raise TypeError(f"expected the UID of a pod, got {type(uid).__name__}")
    if not uid:
        raise ValueError("the UID of a pod is empty; use the UID of the API server's object")


def check_pod(pod: Pod) -> None:
    """Raise TypeError unless it is a Pod, ValueError unless it has a UID."""
    require_type(pod, Pod)
    if not isinstance(pod.metadata.uid, str):
        raise TypeError(f"metadata.uid: expected str, got {type(pod.metadata.uid).__name__}")
    if not pod.metadata.uid:
        raise ValueError(
            f"pod {pod.namespace}/{pod.name} has no UID; "
            "take the pod from the API server, or give a static pod one"
        )
