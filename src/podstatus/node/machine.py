"""Read the machine: processors, memory, processes, the disk. Linux and macOS, without root."""

import os
from pathlib import Path

import psutil

from podstatus.node.reading import CpuTimes, DiskReading, MachineReading

_TASK_LIMITS = ("/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max")


def read_machine() -> MachineReading:
    """All that can be read at once; the disk is another matter."""
    memory = psutil.virtual_memory()
    return MachineReading(
        cores=psutil.cpu_count() or 1,
        cpu=_read_cpu(),
        memory_bytes=memory.total,
        memory_available_bytes=memory.available,
        pids=_count_tasks(),
        max_pids=_max_tasks(),
        load=_read_load(),
        booted=round(psutil.boot_time()) * 1_000_000_000,
    )


def read_disk(folder: Path) -> DiskReading:
    """The filesystem of a folder. May never come back, if that is somebody else's machine."""
    found = os.statvfs(folder)
    return DiskReading(
        total_bytes=found.f_blocks * found.f_frsize,
        used_bytes=(found.f_blocks - found.f_bfree) * found.f_frsize,
        available_bytes=found.f_bavail * found.f_frsize,
        inodes=found.f_files,
        inodes_free=found.f_favail,
    )


def _read_cpu() -> CpuTimes:
    times = psutil.cpu_times()
    # Time of guests is counted as time of users already.
    total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
    idle = times.idle + getattr(times, "iowait", 0.0)
    return CpuTimes(busy=total - idle, total=total)


def _read_load() -> tuple[float, float, float] | None:
    try:
        return os.getloadavg()
    except OSError:
        return None


def _count_tasks() -> int:
    """Threads where they can be told, as pids are what they use up; else processes.

    Upstream: runningTaskCount, stats/pidlimit/pidlimit_linux.go v1.36.4.
    """
    try:
        _, tasks = Path("/proc/loadavg").read_text().split()[3].split("/")
        return int(tasks)
    except (OSError, ValueError, IndexError):
        return len(psutil.pids())


def _max_tasks() -> int | None:
    limits = []
    for path in _TASK_LIMITS:
        try:
            limits.append(int(Path(path).read_text()))
        except (OSError, ValueError):
            continue
    return min(limits, default=None)
