"""What happens to the pods that a node is to run.

Upstream: PodOperation, pkg/kubelet/types/pod_update.go v1.36.4.
"""

from typing import TypeAlias

import msgspec

from podstatus.kube.objects.pod import Pod


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


PodChange: TypeAlias = PodAdded | PodUpdated | PodDeleting | PodRemoved | PodReconciled
