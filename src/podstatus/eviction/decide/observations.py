"""Available amounts by signal, from the usage of the node.

Upstream: makeSignalObservations, pkg/kubelet/eviction/helpers.go and helpers_others.go v1.36.4.
"""

from podstatus.eviction.decide.model import (
    ALLOCATABLE_MEMORY_AVAILABLE,
    CONTAINERFS_AVAILABLE,
    CONTAINERFS_INODES_FREE,
    IMAGEFS_AVAILABLE,
    IMAGEFS_INODES_FREE,
    MEMORY_AVAILABLE,
    NODEFS_AVAILABLE,
    NODEFS_INODES_FREE,
    PID_AVAILABLE,
    FilesystemUsage,
    NodeMemoryUsage,
    NodeResourceUsage,
    Observation,
    PidUsage,
    Signal,
)


def make_signal_observations(node: NodeResourceUsage) -> dict[Signal, Observation]:
    """Return the observations; signals with an unknown amount are left out."""
    filesystems = (
        (node.nodefs, NODEFS_AVAILABLE, NODEFS_INODES_FREE),
        (node.imagefs, IMAGEFS_AVAILABLE, IMAGEFS_INODES_FREE),
        (node.containerfs, CONTAINERFS_AVAILABLE, CONTAINERFS_INODES_FREE),
    )
    observations = {
        MEMORY_AVAILABLE: _memory(node.memory),
        ALLOCATABLE_MEMORY_AVAILABLE: _memory(node.pods_memory),
        PID_AVAILABLE: _pids(node.pids),
    }
    for filesystem, bytes_signal, inodes_signal in filesystems:
        observations[bytes_signal] = _bytes(filesystem)
        observations[inodes_signal] = _inodes(filesystem)
    return {signal: seen for signal, seen in observations.items() if seen is not None}


def _memory(memory: NodeMemoryUsage | None) -> Observation | None:
    if memory is None or memory.available_bytes is None or memory.working_set_bytes is None:
        return None
    return Observation(
        available=memory.available_bytes,
        capacity=memory.available_bytes + memory.working_set_bytes,
        at=memory.at,
    )


def _bytes(filesystem: FilesystemUsage | None) -> Observation | None:
    if filesystem is None or filesystem.available_bytes is None:
        return None
    if filesystem.capacity_bytes is None:
        return None
    return Observation(
        available=filesystem.available_bytes, capacity=filesystem.capacity_bytes, at=filesystem.at
    )


def _inodes(filesystem: FilesystemUsage | None) -> Observation | None:
    if filesystem is None or filesystem.inodes_free is None or filesystem.inodes is None:
        return None
    return Observation(
        available=filesystem.inodes_free, capacity=filesystem.inodes, at=filesystem.at
    )


def _pids(pids: PidUsage | None) -> Observation | None:
    if pids is None or pids.max_pid is None or pids.running is None:
        return None
    return Observation(available=pids.max_pid - pids.running, capacity=pids.max_pid, at=pids.at)
