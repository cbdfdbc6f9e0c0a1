"""Labels and annotations by which pods and containers are found again, as the kubelet's.

The annotation `io.kubernetes.container.hash` is not written: a changed container is recognised by
its pod here.

Upstream: newPodLabels, newContainerLabels, newContainerAnnotations, kuberuntime/labels.go v1.36.4.
"""

import msgspec

from podstatus.kube.encoding.codec import to_document
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod, PodUID

POD_NAME = "io.kubernetes.pod.name"
POD_NAMESPACE = "io.kubernetes.pod.namespace"
POD_UID = "io.kubernetes.pod.uid"
CONTAINER_NAME = "io.kubernetes.container.name"
RESTART_COUNT = "io.kubernetes.container.restartCount"
MESSAGE_PATH = "io.kubernetes.container.terminationMessagePath"
MESSAGE_POLICY = "io.kubernetes.container.terminationMessagePolicy"
MEMORY_REQUEST = "podstatus.dev/memory-request"
"""Ours: no runtime reports the memory request of a container, which it does not enforce."""
_DELETION_GRACE = "io.kubernetes.pod.deletionGracePeriod"
_TERMINATION_GRACE = "io.kubernetes.pod.terminationGracePeriod"
_PRE_STOP = "io.kubernetes.container.preStopHandler"
_PORTS = "io.kubernetes.container.ports"


def pod_selector(uid: PodUID) -> dict[str, str]:
    """Return the labels that select all sandboxes and containers of a pod."""
    return {POD_UID: uid}


def pod_labels(pod: Pod) -> dict[str, str]:
    """Return the labels of a sandbox: those of the pod, and its identity."""
    return {**(pod.metadata.labels or {}), **_identity(pod)}


def container_labels(pod: Pod, container: Container) -> dict[str, str]:
    """Return the labels of a container."""
    return {**_identity(pod), CONTAINER_NAME: container.name}


def container_annotations(pod: Pod, container: Container, restart_count: int) -> dict[str, str]:
    """Return the annotations of a container."""
    annotations = {
        RESTART_COUNT: str(restart_count),
        MESSAGE_PATH: container.termination_message_path,
        MESSAGE_POLICY: container.termination_message_policy,
    }
    if pod.metadata.deletion_grace_period_seconds is not None:
        annotations[_DELETION_GRACE] = str(pod.metadata.deletion_grace_period_seconds)
    if pod.spec.termination_grace_period_seconds is not None:
        annotations[_TERMINATION_GRACE] = str(pod.spec.termination_grace_period_seconds)
    if container.lifecycle is not None and container.lifecycle.pre_stop is not None:
        annotations[_PRE_STOP] = _json(to_document(container.lifecycle.pre_stop))
    if container.ports:
        annotations[_PORTS] = _json([to_document(port) for port in container.ports])
    if memory := (container.resources.requests or {}).get("memory"):
        annotations[MEMORY_REQUEST] = memory.canonical
    return annotations


def _identity(pod: Pod) -> dict[str, str]:
    return {POD_NAME: pod.name, POD_NAMESPACE: pod.namespace, POD_UID: pod.uid}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
