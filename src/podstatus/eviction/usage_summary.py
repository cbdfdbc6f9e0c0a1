"""The usage that eviction decides with, from a snapshot of the node.

Without images there is one filesystem: imagefs and containerfs are nodefs.
"""

from collections.abc import Mapping

from podstatus.eviction.decide.model import (
    ContainerResourceUsage,
    FilesystemUsage,
    NodeMemoryUsage,
    NodeResourceUsage,
    PidUsage,
    PodResourceUsage,
    UsageSummary,
)
from podstatus.kube.objects.usage import ContainerDiskUsage, DiskUsage, PodDiskUsage, Usage
from podstatus.node.decide.readings import DiskReading, MachineReading, UsageSnapshot


def usage_summary(snapshot: UsageSnapshot, pods_memory_limit: int | None) -> UsageSummary:
    """Return the usage of the node and its pods; times are monotonic.

    `pods_memory_limit`: what all pods together may use, in bytes.
    """
    pods = {
        uid: _pod(usage, snapshot.containers.get(uid, {}), snapshot.disks.get(uid))
        for uid, usage in snapshot.pods.items()
    }
    used = sum(usage.memory_working_set_bytes or 0 for usage in pods.values())
    node = node_usage(snapshot.machine, snapshot.monotonic, pods_memory_limit, used)
    return UsageSummary(node=node, pods=pods)


def node_usage(
    machine: MachineReading, at: int, pods_memory_limit: int | None = None, pods_memory: int = 0
) -> NodeResourceUsage:
    """Return the usage of the node as read at `at`; `pods_memory` is that of all pods."""
    nodefs = None if machine.disk is None else _nodefs(machine.disk, at)
    return NodeResourceUsage(
        memory=NodeMemoryUsage(
            available_bytes=machine.memory_available_bytes,
            working_set_bytes=machine.memory_bytes - machine.memory_available_bytes,
            at=at,
        ),
        pods_memory=None
        if pods_memory_limit is None
        else NodeMemoryUsage(
            available_bytes=pods_memory_limit - pods_memory, working_set_bytes=pods_memory, at=at
        ),
        nodefs=nodefs,
        imagefs=nodefs,
        containerfs=nodefs,
        pids=PidUsage(max_pid=machine.max_pids, running=machine.pids, at=at),
    )


def _nodefs(disk: DiskReading, at: int) -> FilesystemUsage:
    counts_inodes = disk.inodes > 0
    return FilesystemUsage(
        available_bytes=disk.available_bytes,
        capacity_bytes=disk.total_bytes,
        used_bytes=disk.used_bytes,
        inodes=disk.inodes if counts_inodes else None,
        inodes_free=disk.inodes_free if counts_inodes else None,
        inodes_used=disk.inodes - disk.inodes_free if counts_inodes else None,
        at=at,
    )


def _pod(
    usage: Usage, containers: Mapping[str, Usage], disk: PodDiskUsage | None
) -> PodResourceUsage:
    on_disk = {} if disk is None else disk.containers
    return PodResourceUsage(
        memory_working_set_bytes=usage.memory_bytes,
        process_count=usage.pids,
        ephemeral_storage_bytes=None if disk is None else _ephemeral_storage(disk),
        containers=tuple(
            _container(name, containers.get(name), on_disk.get(name))
            for name in dict.fromkeys((*containers, *on_disk))
        ),
        volumes={}
        if disk is None
        else {name: _filesystem(volume) for name, volume in disk.volumes.items()},
    )


def _ephemeral_storage(disk: PodDiskUsage) -> int:
    in_containers = sum(it.rootfs.bytes + it.logs.bytes for it in disk.containers.values())
    return in_containers + sum(volume.bytes for volume in disk.volumes.values())


def _container(
    name: str, usage: Usage | None, disk: ContainerDiskUsage | None
) -> ContainerResourceUsage:
    return ContainerResourceUsage(
        name=name,
        memory_working_set_bytes=None if usage is None else usage.memory_bytes,
        rootfs=None if disk is None else _filesystem(disk.rootfs),
        logs=None if disk is None else _filesystem(disk.logs),
    )


def _filesystem(usage: DiskUsage) -> FilesystemUsage:
    return FilesystemUsage(used_bytes=usage.bytes, inodes_used=usage.inodes)
