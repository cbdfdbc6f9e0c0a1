"""Turn a pod from a file or URL into a static pod.

Upstream: applyDefaults and generatePodName, pkg/kubelet/config/common.go v1.36.4; the annotations
config.source and config.seen are set in config.go there.
"""

from hashlib import sha256
from typing import Literal

import msgspec
from msgspec import structs

from podstatus.kube.encoding.codec import to_document
from podstatus.kube.encoding.go_json import encode_document
from podstatus.kube.objects.pod import CONFIG_SOURCE, Pod
from podstatus.kube.objects.pod_spec import PodSpec, Toleration
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.kube.scalars.time import Time
from podstatus.sources.decide.pod_changes import CONFIG_HASH, CONFIG_SEEN

StaticSource = Literal["file", "http"]

_HASH_CHARACTERS = 32
_TOLERATE_ALL_NO_EXECUTE = Toleration(operator="Exists", effect="NoExecute")


class ManifestOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Source, location and node of a manifest."""

    source: StaticSource
    location: str
    """The path of the file, or the URL."""
    node_name: str


def content_hash(pod: Pod, origin: ManifestOrigin) -> str:
    """A hash of the pod's content and origin, independent of formatting.

    Pass the pod before defaulting, so that a later version with more defaults does not restart the
    pods of a node.
    """
    content = encode_document(to_document(structs.replace(pod, status=PodStatus())))
    hashed = sha256(content)
    for part in (origin.node_name, origin.source, origin.location):
        hashed.update(b"\0" + part.encode(errors="surrogateescape"))
    return hashed.hexdigest()[:_HASH_CHARACTERS]


def make_static_pod(pod: Pod, content_hash: str, origin: ManifestOrigin, seen: Time) -> Pod:
    """The pod with the name, UID and annotations of a static pod on this node.

    A UID in the manifest is kept.
    """
    meta = pod.metadata
    annotations = {CONFIG_HASH: content_hash, CONFIG_SOURCE: origin.source, CONFIG_SEEN: str(seen)}
    metadata = structs.replace(
        meta,
        name=f"{meta.name}-{origin.node_name.lower()}",
        namespace=meta.namespace or "default",
        uid=meta.uid or content_hash,
        annotations=(meta.annotations or {}) | annotations,
    )
    spec = structs.replace(pod.spec, node_name=origin.node_name)
    if origin.source == "file":
        spec = _with_no_execute_toleration(spec)
    return structs.replace(pod, metadata=metadata, spec=spec, status=PodStatus(phase="Pending"))


def _with_no_execute_toleration(spec: PodSpec) -> PodSpec:
    """Tolerate all NoExecute taints, so that node-critical pods are not evicted."""
    others = [
        toleration
        for toleration in spec.tolerations or ()
        if structs.replace(toleration, toleration_seconds=None) != _TOLERATE_ALL_NO_EXECUTE
    ]
    return structs.replace(spec, tolerations=(*others, _TOLERATE_ALL_NO_EXECUTE))
