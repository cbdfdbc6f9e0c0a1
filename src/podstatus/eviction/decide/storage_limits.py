"""Pods that exceed a local storage limit of their own, which are evicted without pressure.

Upstream: localStorageEviction, pkg/kubelet/eviction/eviction_manager.go v1.36.4. A volume of which
the usage is unknown is skipped; upstream ends with a nil pointer there.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from podstatus.eviction.decide.model import (
    EPHEMERAL_STORAGE,
    FilesystemLayout,
    FilesystemUsage,
    PodEviction,
    PodResourceUsage,
)
from podstatus.kube.objects.pod import Pod, PodUID, is_critical_pod
from podstatus.kube.pod_resources import pod_limits
from podstatus.kube.scalars.go_text import go_quoted
from podstatus.kube.scalars.quantity import Quantity

EMPTY_DIR_LIMIT = "emptydirfs.limit"
POD_LIMIT = "ephemeralpodfs.limit"
CONTAINER_LIMIT = "ephemeralcontainerfs.limit"

IMMEDIATE_GRACE_PERIOD_SECONDS: Final = 1
"""Grace period of a pod that has to go at once."""

_NANO = 1_000_000_000


def storage_limit_evictions(
    pods: Iterable[Pod], usage: Mapping[PodUID, PodResourceUsage], layout: FilesystemLayout
) -> tuple[PodEviction, ...]:
    """Return the evictions of all pods above a limit; critical pods are never among them."""
    found = (
        _exceeded_limit(pod, usage[pod.uid], layout)
        for pod in pods
        if pod.uid in usage and not is_critical_pod(pod)
    )
    return tuple(eviction for eviction in found if eviction is not None)


def _exceeded_limit(
    pod: Pod, usage: PodResourceUsage, layout: FilesystemLayout
) -> PodEviction | None:
    exceeded = _empty_dir(pod, usage) or _whole_pod(pod, usage) or _container(pod, usage, layout)
    if exceeded is None:
        return None
    limit, message = exceeded
    return PodEviction(
        pod=pod, signal=limit, message=message, grace_period_seconds=IMMEDIATE_GRACE_PERIOD_SECONDS
    )


def _empty_dir(pod: Pod, usage: PodResourceUsage) -> tuple[str, str] | None:
    """The first volume above its limit, whatever its medium."""
    for volume in pod.spec.volumes or ():
        limit = None if volume.empty_dir is None else volume.empty_dir.size_limit
        used = _used_bytes(usage.volumes.get(volume.name))
        if limit is not None and limit.parts.value > 0 and _exceeds(used, limit):
            name, size = go_quoted(volume.name), go_quoted(limit.canonical)
            return EMPTY_DIR_LIMIT, f"Usage of EmptyDir volume {name} exceeds the limit {size}. "
    return None


def _whole_pod(pod: Pod, usage: PodResourceUsage) -> tuple[str, str] | None:
    """The sum of the limits, if any container has one: a limit of 0 counts."""
    limit = pod_limits(pod.spec).get(EPHEMERAL_STORAGE)
    if limit is None or not _exceeds(usage.ephemeral_storage_bytes or 0, limit):
        return None
    return POD_LIMIT, (
        "Pod ephemeral local storage usage exceeds the total limit of containers "
        f"{limit.canonical}. "
    )


def _container(
    pod: Pod, usage: PodResourceUsage, layout: FilesystemLayout
) -> tuple[str, str] | None:
    """The first regular container above its limit; with a dedicated imagefs, only logs count."""
    limits = {
        container.name: limit
        for container in pod.spec.containers or ()
        if (limit := (container.resources.limits or {}).get(EPHEMERAL_STORAGE)) is not None
        and limit.value
    }
    for container in usage.containers:
        used = _used_bytes(container.logs)
        used += 0 if layout.dedicated_imagefs else _used_bytes(container.rootfs)
        if container.name in limits and _exceeds(used, limits[container.name]):
            size = go_quoted(limits[container.name].canonical)
            return CONTAINER_LIMIT, (
                f"Container {container.name} exceeded its local ephemeral storage limit {size}. "
            )
    return None


def _used_bytes(filesystem: FilesystemUsage | None) -> int:
    return 0 if filesystem is None else filesystem.used_bytes or 0


def _exceeds(used: int, limit: Quantity) -> bool:
    return used * _NANO > limit.nanos
