"""Pods as `v1.PodList`.

Upstream: encodePods, pkg/kubelet/server/server.go; GetRunningPods, kubelet_pods.go; v1.36.4.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from podstatus.kube.encoding.codec import to_document
from podstatus.kube.encoding.go_json import encode_document
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.meta import ObjectMeta
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.runtime_facts import ContainerRunState
from podstatus.runtime.port import RuntimePod


def pod_list(pods: Iterable[Pod]) -> bytes:
    """The list, as it travels."""
    items: list[dict[str, Any]] = [to_document(pod) for pod in pods]
    for item in items:
        # A list says once for all what its items are.
        item.pop("kind", None)
        item.pop("apiVersion", None)
    document: dict[str, Any] = {
        "kind": "PodList",
        "apiVersion": "v1",
        "metadata": {},
        "items": items or None,
    }
    return encode_document(document)


def running_pods(pods: Sequence[RuntimePod]) -> list[Pod]:
    """The pods of a runtime that have running containers, with no more than it knows of them."""
    return [made for pod in pods if (made := _running(pod)).spec.containers]


def _running(pod: RuntimePod) -> Pod:
    containers = tuple(
        Container(name=facts.name, image=facts.image)
        for facts in pod.facts.containers
        if facts.state is ContainerRunState.RUNNING
    )
    return Pod(
        metadata=ObjectMeta(name=pod.name, namespace=pod.namespace, uid=pod.uid),
        spec=PodSpec(containers=containers),
    )


def running_container(pods: Sequence[RuntimePod], uid: str, container: str) -> str | None:
    """The ID of the attempt that runs now; None if none does."""
    for pod in pods:
        if pod.uid != uid:
            continue
        for facts in pod.facts.containers:
            if facts.name == container and facts.state is ContainerRunState.RUNNING:
                return facts.id
    return None
