"""Read the machine: CPU, memory, processes, disk. Linux and macOS, without root.

The filesystem of a dead network mount may block forever: `DiskReader` reads it in a daemon thread,
with a timeout.
"""

import asyncio
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import psutil

from podstatus.base.daemon_thread import run_in_daemon_thread
from podstatus.node.decide.readings import CpuTimes, DiskReading, MachineReading
from podstatus.node.machine.kernel_counters import (
    read_interfaces,
    read_memory_usage,
    read_pressures,
    read_text,
)

_TASK_LIMITS = ("/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max")


def read_machine() -> MachineReading:
    """Read everything except the disk, which may block."""
    memory = psutil.virtual_memory()
    return MachineReading(
        cores=psutil.cpu_count() or 1,
        cpu=_read_cpu(),
        memory_bytes=memory.total,
        memory_available_bytes=memory.available,
        pids=_count_tasks(),
        max_pids=_max_tasks(),
        load=_read_load(),
        booted_at=round(psutil.boot_time()) * 1_000_000_000,
        memory=read_memory_usage(working_set=memory.total - memory.available),
        pressure=read_pressures(),
        interfaces=read_interfaces(),
    )


def read_disk(folder: Path) -> DiskReading:
    """statvfs(folder). May block forever on a dead network mount."""
    stat = os.statvfs(folder)
    return DiskReading(
        total_bytes=stat.f_blocks * stat.f_frsize,
        used_bytes=(stat.f_blocks - stat.f_bfree) * stat.f_frsize,
        available_bytes=stat.f_bavail * stat.f_frsize,
        inodes=stat.f_files,
        inodes_free=stat.f_favail,
        device=_device_of(folder.stat().st_dev),
    )


@lru_cache(maxsize=16)
def _device_of(number: int) -> str:
    """The mounted device with this number, as `/dev/vda`; empty if unknown."""
    wanted = f"{os.major(number)}:{os.minor(number)}"
    for line in read_text(Path("/proc/self/mountinfo")).splitlines():
        left, _, right = line.partition(" - ")
        if left.split()[2] == wanted:
            return right.split()[1]
    return ""


def _read_cpu() -> CpuTimes:
    times = psutil.cpu_times()
    # Guest time is already included in user time.
    total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
    idle = times.idle + getattr(times, "iowait", 0.0)
    return CpuTimes(busy=total - idle, total=total)


def _read_load() -> tuple[float, float, float] | None:
    try:
        return os.getloadavg()
    except OSError:
        return None


def _count_tasks() -> int:
    """Number of threads, since each uses a PID; number of processes where that is unknown.

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


_DISK_TIMEOUT_SECONDS = 5.0
"""Long for a disk, and shorter than the sampling period of 10 s."""


class DiskReader:
    """Reads the filesystem of a folder in a thread, with a timeout. At most one thread hangs."""

    def __init__(
        self,
        folder: Path,
        *,
        read: Callable[[Path], DiskReading] = read_disk,
        seconds: float = _DISK_TIMEOUT_SECONDS,
    ) -> None:
        self._folder = folder
        self._read = read
        self._seconds = seconds
        self._pending_read: asyncio.Task[DiskReading] | None = None
        self._problem: str | None = None

    def problem(self) -> str | None:
        """Why the last read failed; None if it succeeded."""
        return self._problem

    async def read_once(self) -> DiskReading | None:
        """The reading; None on failure or timeout, see `problem`."""
        if self._pending_read is None:
            self._pending_read = asyncio.create_task(run_in_daemon_thread(self._read, self._folder))
        pending = self._pending_read
        await asyncio.wait([pending], timeout=self._seconds)
        if not pending.done():
            self._problem = (
                f"reading the disk of {self._folder} timed out after {self._seconds:g} s"
            )
            return None
        self._pending_read = None
        return self._result_of(pending)

    def _result_of(self, finished: asyncio.Task[DiskReading]) -> DiskReading | None:
        try:
            result = finished.result()
        except OSError as error:
            self._problem = f"cannot read the disk of {self._folder}: {error.strerror or error}"
            return None
        self._problem = None
        return result
