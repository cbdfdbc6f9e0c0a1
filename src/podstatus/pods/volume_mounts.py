"""How the volumes of a container are mounted, as its status tells before it is created.

Upstream: convertToAPIContainerStatuses and resolveRecursiveReadOnly, kubelet_pods.go v1.36.4.
"""

from podstatus.kube.objects.containers import Container, VolumeMount
from podstatus.kube.objects.pod_status import VolumeMountStatus

ENABLED = "Enabled"
DISABLED = "Disabled"


def volume_mount_statuses(
    container: Container, *, recursive_read_only: bool
) -> tuple[VolumeMountStatus, ...] | None:
    """One status per mount; `recursive_read_only` says whether the runtime is able to."""
    statuses = [
        VolumeMountStatus(
            name=mount.name,
            mount_path=mount.mount_path,
            read_only=mount.read_only,
            recursive_read_only=_mode(mount, possible=recursive_read_only),
        )
        for mount in container.volume_mounts or ()
    ]
    return tuple(statuses) or None


def _mode(mount: VolumeMount, *, possible: bool) -> str | None:
    """Whether mounts below are read-only too; what cannot be had counts as not asked for."""
    if not mount.read_only:
        return None
    asked = mount.recursive_read_only in (ENABLED, "IfPossible")
    alone = mount.mount_propagation in (None, "None")
    return ENABLED if possible and asked and alone else DISABLED
