"""Read the machine: CPU, memory, processes, disk. Linux and macOS, without root.

The filesystem of a dead network mount may block forever: `DiskReader` reads it in a daemon thread,
with a timeout.
"""

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

from podstatus.node.decide.readings import CpuTimes, DiskReading, MachineReading

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
        booted_at=round(psutil.boot_time()) * 1_000_000_000,
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


_DISK_TIMEOUT_SECONDS = 5.0
"""Long for a disk, and short enough for a reading every 10 s."""


class DiskReader:
    """The filesystem of a folder, read in a thread; one at most hangs, however often one asks.

    The thread is a daemon: it does not keep the process from ending, as one of an executor would.
    """

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
        self._pending_read: asyncio.Future[DiskReading] | None = None
        self._problem: str | None = None

    def problem(self) -> str | None:
        """Why nothing is known about the disk, or None."""
        return self._problem

    async def read_once(self) -> DiskReading | None:
        """What the disk says, or None: `problem` tells why."""
        if self._pending_read is None:
            self._pending_read = self._start_read()
        asked = self._pending_read
        await asyncio.wait([asked], timeout=self._seconds)
        if not asked.done():
            self._problem = f"the disk of {self._folder} has not answered for {self._seconds:g} s"
            return None
        self._pending_read = None
        return self._result_of(asked)

    def _result_of(self, future: asyncio.Future[DiskReading]) -> DiskReading | None:
        try:
            told = future.result()
        except OSError as error:
            self._problem = f"the disk of {self._folder} cannot be read: {error.strerror or error}"
            return None
        self._problem = None
        return told

    def _start_read(self) -> asyncio.Future[DiskReading]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[DiskReading] = loop.create_future()
        thread = threading.Thread(
            target=self._run_read, args=(loop, future), name="podstatus-disk", daemon=True
        )
        thread.start()
        return future

    def _run_read(
        self, loop: asyncio.AbstractEventLoop, future: "asyncio.Future[DiskReading]"
    ) -> None:
        told: DiskReading | OSError
        try:
            told = self._read(self._folder)
        except OSError as error:
            told = error
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(_set_result, future, told)


def _set_result(future: "asyncio.Future[DiskReading]", result: DiskReading | OSError) -> None:
    if future.done():
        return
    if isinstance(result, OSError):
        future.set_exception(result)
    else:
        future.set_result(result)
