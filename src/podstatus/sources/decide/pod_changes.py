"""Changes of the desired pods, and the classification of a new version of a pod.

Unlike upstream, a change that no consumer acts on (a finalizer, an owner) is a reconciliation, so
that the stored pod is never older than its source's.

Upstream: PodOperation, pkg/kubelet/types/pod_update.go; checkAndUpdatePod and
podsDifferSemantically, pkg/kubelet/config/config.go v1.36.4.
"""

from collections.abc import Iterable
from typing import TypeAlias

import msgspec
from msgspec import structs

from podstatus.kube.objects.pod import CONFIG_MIRROR, CONFIG_SOURCE, Pod


class PodAdded(msgspec.Struct, frozen=True):
    """New pods, oldest first. Some may be terminating already."""

    pods: tuple[Pod, ...]


class PodUpdated(msgspec.Struct, frozen=True):
    """The desired state of a pod has changed."""

    pod: Pod


class PodDeleting(msgspec.Struct, frozen=True):
    """A pod was deleted, or changed while being deleted."""

    pod: Pod


class PodRemoved(msgspec.Struct, frozen=True):
    """A pod has left its source; `pod` is its last version."""

    pod: Pod


class PodReconciled(msgspec.Struct, frozen=True):
    """Only the status of a pod differs, or a field that workers do not read."""

    pod: Pod


PodConfigChange: TypeAlias = PodAdded | PodUpdated | PodDeleting | PodRemoved | PodReconciled


CONFIG_SEEN = "kubernetes.io/config.seen"
CONFIG_HASH = "kubernetes.io/config.hash"

_LOCAL_ANNOTATIONS = (CONFIG_SOURCE, CONFIG_MIRROR, CONFIG_SEEN)
"""Annotations of the node itself, which are not part of the desired state."""


def classify_change(old: Pod, new: Pod) -> PodUpdated | PodDeleting | PodReconciled | None:
    """The change from `old` to `new`; None if they are equal."""
    if old is new or old == new:
        return None
    new = _with_first_seen(old, new)
    if _differ_semantically(old, new):
        is_deleting = new.metadata.deletion_timestamp is not None
        return PodDeleting(new) if is_deleting else PodUpdated(new)
    return None if old == new else PodReconciled(new)


def oldest_first(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Sorted by creation time; stable for equal times."""
    return tuple(sorted(pods, key=lambda pod: pod.metadata.creation_timestamp))


def _differ_semantically(old: Pod, new: Pod) -> bool:
    before, after = old.metadata, new.metadata
    return (
        before.deletion_timestamp != after.deletion_timestamp
        or before.deletion_grace_period_seconds != after.deletion_grace_period_seconds
        or (before.labels or {}) != (after.labels or {})
        or _shared_annotations(before.annotations) != _shared_annotations(after.annotations)
        or old.spec != new.spec
    )


def _shared_annotations(annotations: dict[str, str] | None) -> dict[str, str]:
    """The annotations without those of the node."""
    if not annotations:
        return {}
    return {key: value for key, value in annotations.items() if key not in _LOCAL_ANNOTATIONS}


def _with_first_seen(old: Pod, new: Pod) -> Pod:
    """The new version with the `config.seen` annotation of the old one."""
    annotations = new.metadata.annotations or {}
    seen = (old.metadata.annotations or {}).get(CONFIG_SEEN)
    if seen is None or annotations.get(CONFIG_SEEN) == seen:
        return new
    metadata = structs.replace(new.metadata, annotations=annotations | {CONFIG_SEEN: seen})
    return structs.replace(new, metadata=metadata)
