"""The order in which pods are evicted.

Pods without usage come first, except that priority precedes it for process IDs. Ties stay in the
order of the input.

Upstream: rankMemoryPressure, rankPIDPressure, rankDiskPressureFunc and buildSignalToRankFunc,
pkg/kubelet/eviction/helpers.go v1.36.4. Its sort is not stable for more than 12 pods.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal

from podstatus.eviction.decide.model import (
    EPHEMERAL_STORAGE,
    IMAGEFS_AVAILABLE,
    IMAGEFS_INODES_FREE,
    INODES,
    MEMORY,
    NODEFS_AVAILABLE,
    NODEFS_INODES_FREE,
    PIDS,
    RESOURCE_BY_SIGNAL,
    FilesystemLayout,
    FilesystemUsage,
    PodResourceUsage,
    Signal,
)
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.volumes import Volume
from podstatus.kube.pod_resources import pod_request

Measured = frozenset[Literal["root", "logs", "volumes"]]
"""The parts of a pod's disk usage that are on one filesystem."""

_ALL: Final[Measured] = frozenset(("root", "logs", "volumes"))
_NANO = 1_000_000_000


def rank_pods(
    signal: Signal,
    pods: Iterable[Pod],
    usage: Mapping[PodUID, PodResourceUsage],
    layout: FilesystemLayout,
) -> tuple[Pod, ...]:
    """Return the pods in the order in which they are evicted to reclaim the signal's resource."""
    resource = RESOURCE_BY_SIGNAL[signal]
    if resource == PIDS:
        return tuple(sorted(pods, key=lambda pod: _pid_rank(pod, usage.get(pod.uid))))
    used = _memory if resource == MEMORY else _disk(resource, measured_parts(signal, layout))
    return tuple(sorted(pods, key=lambda pod: _rank(pod, usage.get(pod.uid), resource, used)))


def measured_parts(signal: Signal, layout: FilesystemLayout) -> Measured:
    """Return which parts of a pod's usage are on the filesystem of this signal.

    The images of a pod are on a filesystem too, but their usage is not known per pod.
    """
    on_nodefs = signal in (NODEFS_AVAILABLE, NODEFS_INODES_FREE)
    on_imagefs = signal in (IMAGEFS_AVAILABLE, IMAGEFS_INODES_FREE)
    if not layout.dedicated_imagefs:
        return _ALL
    if layout.split_containerfs:
        return frozenset() if on_imagefs else _ALL
    return _ALL - {"root"} if on_nodefs else frozenset(("root",))


def _rank(
    pod: Pod,
    usage: PodResourceUsage | None,
    resource: str,
    used: Callable[[Pod, PodResourceUsage], int],
) -> tuple[bool, bool, int, int]:
    """The sort key: exceeds its request, low priority, then usage over the request.

    The last one is over the request of bytes, even for inodes, as upstream has it.
    """
    if usage is None:
        return (False, False, _priority(pod), 0)
    nanos = used(pod, usage) * _NANO
    within_request = nanos <= pod_request(pod.spec, resource).nanos
    subtracted = EPHEMERAL_STORAGE if resource == INODES else resource
    return (True, within_request, _priority(pod), pod_request(pod.spec, subtracted).nanos - nanos)


def _pid_rank(pod: Pod, usage: PodResourceUsage | None) -> tuple[int, bool, int]:
    processes = 0 if usage is None else usage.process_count or 0
    return (_priority(pod), usage is not None, -processes)


def _priority(pod: Pod) -> int:
    return pod.spec.priority or 0


def _memory(pod: Pod, usage: PodResourceUsage) -> int:  # noqa: ARG001 - like the usage of disks
    return usage.memory_working_set_bytes or 0


def _disk(resource: str, parts: Measured) -> Callable[[Pod, PodResourceUsage], int]:
    def used(pod: Pod, usage: PodResourceUsage) -> int:
        filesystems = _measured_filesystems(pod, usage, parts)
        return sum(_amount(filesystem, resource) for filesystem in filesystems)

    return used


def _measured_filesystems(
    pod: Pod, usage: PodResourceUsage, parts: Measured
) -> Iterable[FilesystemUsage | None]:
    for container in usage.containers:
        yield container.rootfs if "root" in parts else None
        yield container.logs if "logs" in parts else None
    if "volumes" in parts:
        for volume in filter(is_local_volume, pod.spec.volumes or ()):
            yield usage.volumes.get(volume.name)


def is_local_volume(volume: Volume) -> bool:
    """Return whether the volume uses the node's disk, according to upstream.

    It counts hostPath volumes, but not secrets, downward API files and projected volumes.
    Upstream: localVolumeNames; IsLocalEphemeralVolume, pkg/volume/util.
    """
    on_disk = volume.empty_dir is not None and volume.empty_dir.medium == ""
    sources = (volume.host_path, volume.git_repo, volume.config_map)
    return on_disk or any(source is not None for source in sources)


def _amount(filesystem: FilesystemUsage | None, resource: str) -> int:
    if filesystem is None:
        return 0
    return (filesystem.inodes_used if resource == INODES else filesystem.used_bytes) or 0
