"""The changes of the pods that a node is to run, and which change a new state of a pod is.

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
    """Pods are there that were not, the oldest first. Some may be on their way out already."""

    pods: tuple[Pod, ...]


class PodUpdated(msgspec.Struct, frozen=True):
    """What a pod is to be has changed."""

    pod: Pod


class PodDeleting(msgspec.Struct, frozen=True):
    """Somebody asked for the deletion of a pod, or changed one that is being deleted."""

    pod: Pod


class PodRemoved(msgspec.Struct, frozen=True):
    """A pod is not wanted any more; as it was last told."""

    pod: Pod


class PodReconciled(msgspec.Struct, frozen=True):
    """A pod is to be what it was; its status differs, or something that workers do not read."""

    pod: Pod


PodConfigChange: TypeAlias = PodAdded | PodUpdated | PodDeleting | PodRemoved | PodReconciled


CONFIG_SEEN = "kubernetes.io/config.seen"
CONFIG_HASH = "kubernetes.io/config.hash"

_LOCAL_ANNOTATIONS = (CONFIG_SOURCE, CONFIG_MIRROR, CONFIG_SEEN)
"""Annotations that are the node's own: they say nothing about what a pod is to be."""


def classify_change(old: Pod, new: Pod) -> PodUpdated | PodDeleting | PodReconciled | None:
    """What to tell about a pod that was `old`; None if it is the same."""
    if old is new or old == new:
        return None
    new = _with_first_seen(old, new)
    if _differ_semantically(old, new):
        is_deleting = new.metadata.deletion_timestamp is not None
        return PodDeleting(new) if is_deleting else PodUpdated(new)
    return None if old == new else PodReconciled(new)


def oldest_first(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """In the order in which they were made; those of one moment as they are."""
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
    """The annotations without the node's own."""
    if not annotations:
        return {}
    return {key: value for key, value in annotations.items() if key not in _LOCAL_ANNOTATIONS}


def _with_first_seen(old: Pod, new: Pod) -> Pod:
    """The new state with the time at which the pod was seen first, not at which it was read."""
    annotations = new.metadata.annotations or {}
    seen = (old.metadata.annotations or {}).get(CONFIG_SEEN)
    if seen is None or annotations.get(CONFIG_SEEN) == seen:
        return new
    kept = structs.replace(new.metadata, annotations=annotations | {CONFIG_SEEN: seen})
    return structs.replace(new, metadata=kept)
