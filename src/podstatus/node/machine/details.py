"""Details of the machine that only cAdvisor's metrics need: read when these are requested."""

from functools import lru_cache
from pathlib import Path

import psutil

from podstatus.kube.objects.cgroup_details import (
    CgroupDetails,
    CpuDetails,
    DeviceIo,
    MemoryDetails,
)
from podstatus.node.decide.readings import MachineDetails
from podstatus.node.machine.kernel_counters import bytes_by_name, numbers_by_name, read_text

_SECTOR_BYTES = 512
"""Unit of /proc/diskstats, whatever the device's sector size."""
_IGNORED_DEVICES = ("loop", "ram")


def read_machine_details(at: int, *, root: Path = Path("/")) -> MachineDetails:
    """Read the details; `at` is the time of this call, in nanoseconds since the Unix epoch."""
    times = psutil.cpu_times()
    return MachineDetails(
        physical_cores=psutil.cpu_count(logical=False),
        sockets=_count_sockets(root),
        details=CgroupDetails(
            at=at,
            cgroup="/",
            cpu=CpuDetails(
                user_seconds=times.user + getattr(times, "nice", 0.0), system_seconds=times.system
            ),
            memory=_read_memory(root),
            devices=_read_devices(root),
        ),
    )


def _read_memory(root: Path) -> MemoryDetails:
    memory = bytes_by_name(read_text(root / "proc/meminfo"))
    cached, buffers = memory.get("Cached"), memory.get("Buffers")
    return MemoryDetails(
        cache=None if cached is None or buffers is None else cached + buffers,
        mapped_file=memory.get("Mapped"),
        active_file=memory.get("Active(file)"),
        inactive_file=memory.get("Inactive(file)"),
        oom_kills=numbers_by_name(read_text(root / "proc/vmstat")).get("oom_kill"),
        limit=memory.get("MemTotal"),
        swap_limit=memory.get("SwapTotal"),
    )


def _read_devices(root: Path) -> tuple[DeviceIo, ...]:
    """Read /proc/diskstats; devices without any I/O are omitted."""
    rows = [line.split() for line in read_text(root / "proc/diskstats").splitlines()]
    devices = (_device(row) for row in rows if not row[2].startswith(_IGNORED_DEVICES))
    return tuple(it for it in devices if it.reads or it.writes)


def _device(row: list[str]) -> DeviceIo:
    reads, reads_merged, sectors_read, read_ms = map(int, row[3:7])
    writes, writes_merged, sectors_written, write_ms = map(int, row[7:11])
    in_progress, io_ms, weighted_ms = map(int, row[11:14])
    return DeviceIo(
        device=f"/dev/{row[2]}",
        major=int(row[0]),
        minor=int(row[1]),
        bytes_by_operation={
            "Read": sectors_read * _SECTOR_BYTES,
            "Write": sectors_written * _SECTOR_BYTES,
        },
        reads=reads,
        writes=writes,
        sectors_read=sectors_read,
        sectors_written=sectors_written,
        reads_merged=reads_merged,
        writes_merged=writes_merged,
        read_seconds=read_ms / 1000,
        write_seconds=write_ms / 1000,
        in_progress=in_progress,
        io_seconds=io_ms / 1000,
        weighted_io_seconds=weighted_ms / 1000,
    )


@lru_cache(maxsize=4)
def _count_sockets(root: Path) -> int | None:
    """The number of CPU packages; None if the kernel does not say."""
    files = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/topology/physical_package_id")
    return len({text for file in files if (text := read_text(file).strip())}) or None
