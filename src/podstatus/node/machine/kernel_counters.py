"""Counters of the Linux kernel: memory, pressure, network interfaces, and of the agent's process.

What a kernel does not report is None; other systems report nothing of this.
"""

import os
import resource
from collections.abc import Mapping
from pathlib import Path

from podstatus.base.pressure import Pressure, Pressures, parse_pressure
from podstatus.kube.objects.usage import MemoryUsage, Usage
from podstatus.node.decide.readings import InterfaceReading

_IGNORED_INTERFACES = ("lo", "veth", "docker", "nerdctl")
"""Upstream: ignoredDevicePrefixes, cadvisor v0.56.2, container/libcontainer/handler.go."""


def read_memory_usage(*, working_set: int, root: Path = Path("/")) -> MemoryUsage:
    """Read the memory of the machine.

    Upstream takes the same from the root cgroup, which in version 2 has it from these files.
    """
    memory = bytes_by_name(read_text(root / "proc/meminfo"))
    events = numbers_by_name(read_text(root / "proc/vmstat"))
    total, free, swap = (memory.get(name) for name in ("MemTotal", "MemFree", "SwapTotal"))
    swap_free = memory.get("SwapFree")
    # The kernel's reserves are free, and not available.
    used = None if total is None or free is None else max(total - free, working_set)
    return MemoryUsage(
        usage_bytes=used,
        rss_bytes=memory.get("AnonPages"),
        page_faults=events.get("pgfault"),
        major_page_faults=events.get("pgmajfault"),
        swap_bytes=None if swap is None or swap_free is None else swap - swap_free,
        swap_limit_bytes=swap,
    )


def read_pressures(root: Path = Path("/")) -> Pressures:
    """Read the pressure on the machine as a whole."""

    def pressure(name: str) -> Pressure | None:
        return parse_pressure(read_text(root / "proc/pressure" / name))

    return Pressures(cpu=pressure("cpu"), memory=pressure("memory"), io=pressure("io"))


def read_interfaces(root: Path = Path("/")) -> tuple[InterfaceReading, ...]:
    """Read the network interfaces that the agent sees, without loopback and those of containers."""
    lines = read_text(root / "proc/net/dev").splitlines()
    named = (line.partition(":") for line in lines[2:])
    rows = ((name.strip(), [int(it) for it in text.split()]) for name, _, text in named)
    return tuple(
        InterfaceReading(
            name=name,
            received_bytes=row[0],
            received_packets=row[1],
            receive_errors=row[2],
            receive_dropped=row[3],
            sent_bytes=row[8],
            sent_packets=row[9],
            send_errors=row[10],
            send_dropped=row[11],
        )
        for name, row in rows
        if not name.lower().startswith(_IGNORED_INTERFACES)
    )


def read_own_usage(at: int) -> Usage:
    """Read the usage of the agent's process, without its children; `at` is the time of this call.

    Without a cgroup of its own, all memory in use is what is resident.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    resident, anonymous = _own_memory()
    return Usage(
        at=at,
        cpu_seconds=used.ru_utime + used.ru_stime,
        memory_bytes=resident,
        memory=MemoryUsage(
            usage_bytes=resident,
            rss_bytes=anonymous,
            page_faults=used.ru_minflt + used.ru_majflt,
            major_page_faults=used.ru_majflt,
        ),
    )


def _own_memory() -> tuple[int | None, int | None]:
    """Resident and anonymous bytes of this process."""
    fields = read_text(Path("/proc/self/statm")).split()
    if not fields:
        return None, None
    resident, shared = int(fields[1]), int(fields[2])
    page = os.sysconf("SC_PAGE_SIZE")
    return resident * page, (resident - shared) * page


def bytes_by_name(text: str) -> Mapping[str, int]:
    """Parse lines such as `MemFree:  123 kB`."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {name: int(value.removesuffix("kB")) * 1024 for name, _, value in pairs if "kB" in value}


def numbers_by_name(text: str) -> Mapping[str, int]:
    """Parse lines such as `pgfault 123`."""
    pairs = (line.partition(" ") for line in text.splitlines())
    return {name: int(value) for name, _, value in pairs}


def read_text(file: Path) -> str:
    """The contents of a file of the kernel; empty if it does not exist."""
    try:
        return file.read_text()
    except OSError:
        return ""
