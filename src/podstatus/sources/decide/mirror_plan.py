"""Plan the changes so that exactly the static pods have mirror pods.

Upstream: tryReconcileMirrorPods, pkg/kubelet/kubelet.go; HandlePodCleanups, kubelet_pods.go;
CreateMirrorPod, pod/mirror_client.go v1.36.4.
"""

from collections.abc import Callable, Collection
from typing import TypeAlias

import msgspec

from podstatus.kube.encoding.codec import to_document
from podstatus.kube.encoding.go_json import encode_document
from podstatus.kube.objects.meta import ObjectMeta, OwnerReference
from podstatus.kube.objects.pod import CONFIG_MIRROR, Pod
from podstatus.sources.decide.pod_changes import CONFIG_HASH

FullName: TypeAlias = tuple[str, str]


class CreateMirror(msgspec.Struct, frozen=True):
    """A static pod without a mirror pod."""

    pod: Pod


class ReplaceMirror(msgspec.Struct, frozen=True):
    """The mirror pod belongs to an older manifest, or is being deleted."""

    mirror: Pod
    pod: Pod


class RemoveMirror(msgspec.Struct, frozen=True):
    """A mirror pod without a static pod."""

    mirror: Pod


MirrorStep: TypeAlias = CreateMirror | ReplaceMirror | RemoveMirror


def plan_mirrors(
    static_pods: Collection[Pod],
    mirror_pods: Collection[Pod],
    may_remove: Callable[[FullName], bool],
) -> dict[FullName, MirrorStep]:
    """The step of each pod that needs one, by name.

    If a file and a URL provide static pods of the same name, the first one has the mirror pod; the
    other one waits until it is finished.
    """
    mirrors = {mirror.full_name: mirror for mirror in mirror_pods}
    steps: dict[FullName, MirrorStep] = {}
    first = {pod.full_name: pod for pod in reversed(list(static_pods))}
    for pod in reversed(first.values()):
        mirror = mirrors.pop(pod.full_name, None)
        if mirror is None:
            steps[pod.full_name] = CreateMirror(pod)
        elif not is_current_mirror(mirror, pod):
            steps[pod.full_name] = ReplaceMirror(mirror, pod)
    for name, mirror in mirrors.items():
        if may_remove(name):
            steps[name] = RemoveMirror(mirror)
    return steps


def is_current_mirror(mirror: Pod, pod: Pod) -> bool:
    """Whether the mirror pod matches this version of the pod and is not being deleted."""
    mirrored_hash = (mirror.metadata.annotations or {}).get(CONFIG_MIRROR)
    return mirrored_hash == _hash(pod) and mirror.metadata.deletion_timestamp is None


def mirror_body(pod: Pod, node_name: str, node_uid: str) -> bytes:
    """JSON of the mirror pod to create, without status, which the status manager sends."""
    meta = pod.metadata
    # NodeRestriction requires the node as the only owner of its mirror pods.
    owner = OwnerReference(
        api_version="v1", kind="Node", name=node_name, uid=node_uid, controller=True
    )
    metadata = ObjectMeta(
        name=meta.name,
        namespace=meta.namespace,
        labels=meta.labels,
        annotations=(meta.annotations or {}) | {CONFIG_MIRROR: _hash(pod)},
        owner_references=(owner,),
    )
    body = Pod(api_version="v1", kind="Pod", metadata=metadata, spec=pod.spec)
    return encode_document({k: v for k, v in to_document(body).items() if k != "status"})


def _hash(pod: Pod) -> str:
    return (pod.metadata.annotations or {}).get(CONFIG_HASH, "")
