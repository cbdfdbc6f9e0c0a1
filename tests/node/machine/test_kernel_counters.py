"""Counters of the kernel: memory, pressure and interfaces of the machine, the agent's process."""

import os
import resource
from pathlib import Path

from podstatus.base.pressure import Pressures, parse_pressure
from podstatus.kube.objects.cgroup_details import DeviceIo
from podstatus.kube.objects.usage import MemoryUsage
from podstatus.node.decide.readings import with_cpu_cores
from podstatus.node.machine.details import read_machine_details
from podstatus.node.machine.kernel_counters import (
    read_interfaces,
    read_memory_usage,
    read_own_usage,
    read_pressures,
)
from podstatus.node.machine.reader import read_disk, read_machine

KI, MI = 2**10, 2**20
MEMINFO = """\
MemTotal:        8000 kB
MemFree:         3000 kB
MemAvailable:    5000 kB
HugePages_Total:       0
SwapTotal:       1000 kB
SwapFree:         400 kB
AnonPages:       1500 kB
"""
NET_DEV = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo
    lo:     100       1    0    0    0     0          0         0      100       1    0    0    0
  eth0:   1000      20    3    4    0     0          0         0     2000      40    5    6    0
veth1a:   1       1    1    1    0     0          0         0      1       1    1    1    0
"""


def put(root: Path, name: str, text: str) -> None:
    file = root / "proc" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_memory_is_what_meminfo_and_vmstat_say(tmp_path: Path) -> None:
    put(tmp_path, "meminfo", MEMINFO)
    put(tmp_path, "vmstat", "nr_free_pages 1\npgfault 900\npgmajfault 12\n")
    assert read_memory_usage(working_set=3000 * KI, root=tmp_path) == MemoryUsage(
        usage_bytes=5000 * KI,
        rss_bytes=1500 * KI,
        page_faults=900,
        major_page_faults=12,
        swap_bytes=600 * KI,
        swap_limit_bytes=1000 * KI,
    )
    # The kernel's reserve: more is unavailable than used.
    assert read_memory_usage(working_set=5500 * KI, root=tmp_path).usage_bytes == 5500 * KI


def test_what_a_kernel_does_not_have_is_unknown(tmp_path: Path) -> None:
    assert read_memory_usage(working_set=1, root=tmp_path) == MemoryUsage()
    assert read_pressures(tmp_path) == Pressures()
    assert read_interfaces(tmp_path) == ()
    assert parse_pressure("some avg10=0.00 avg60=0.00 avg300=0.00 total=5") is not None


def test_pressure_is_in_nanoseconds(tmp_path: Path) -> None:
    put(tmp_path, "pressure/cpu", "some avg10=12.50 avg60=3.00 avg300=1.00 total=7\n")
    cpu = read_pressures(tmp_path).cpu
    assert cpu is not None
    assert (cpu.some.total_nanoseconds, cpu.some.avg10, cpu.full) == (7000, 12.5, None)


def test_interfaces_of_containers_and_loopback_do_not_count(tmp_path: Path) -> None:
    put(tmp_path, "net/dev", NET_DEV)
    (eth0,) = read_interfaces(tmp_path)
    assert eth0.name == "eth0"
    assert (eth0.received_bytes, eth0.received_packets) == (1000, 20)
    assert (eth0.receive_errors, eth0.receive_dropped) == (3, 4)
    assert (eth0.sent_bytes, eth0.sent_packets, eth0.send_errors) == (2000, 40, 5)
    assert eth0.send_dropped == 6


def test_the_working_set_of_this_machine_is_part_of_its_usage() -> None:
    machine = read_machine()
    used = machine.memory.usage_bytes
    assert used is not None
    assert machine.memory_bytes - machine.memory_available_bytes <= used <= machine.memory_bytes


def test_the_agents_own_process_is_measured() -> None:
    before = read_own_usage(1_000_000_000)
    eaten = bytearray(os.urandom(1) * (32 * MI))
    while resource.getrusage(resource.RUSAGE_SELF).ru_utime < (before.cpu_seconds or 0) + 0.1:
        sum(eaten[:1000])
    after = with_cpu_cores(read_own_usage(2_000_000_000), before)
    assert None not in (before.memory.rss_bytes, after.memory.rss_bytes, after.cpu_cores)
    grown = (after.memory.rss_bytes or 0) - (before.memory.rss_bytes or 0)
    assert 30 * MI < grown < 64 * MI
    assert (after.memory.page_faults or 0) > (before.memory.page_faults or 0) + 1000
    assert 0.1 <= (after.cpu_cores or 0.0) < 60


DISKSTATS = """\
   7       0 loop0 5 0 40 1 0 0 0 0 0 1 1 0 0 0 0 0 0
 254       0 vda 100 20 800 1500 50 30 1600 250 1 900 1750 0 0 0 0 7 3
 254      16 vdb 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
"""


def test_devices_with_io_are_read(tmp_path: Path) -> None:
    put(tmp_path, "diskstats", DISKSTATS)
    (vda,) = read_machine_details(7, root=tmp_path).details.devices
    assert vda == DeviceIo(
        device="/dev/vda",
        major=254,
        minor=0,
        bytes_by_operation={"Read": 800 * 512, "Write": 1600 * 512},
        reads=100,
        writes=50,
        sectors_read=800,
        sectors_written=1600,
        reads_merged=20,
        writes_merged=30,
        read_seconds=1.5,
        write_seconds=0.25,
        in_progress=1,
        io_seconds=0.9,
        weighted_io_seconds=1.75,
    )


def test_packages_of_processors_are_counted_once(tmp_path: Path) -> None:
    for number, package in enumerate("0011"):
        file = tmp_path / f"sys/devices/system/cpu/cpu{number}/topology/physical_package_id"
        file.parent.mkdir(parents=True)
        file.write_text(f"{package}\n")
    assert read_machine_details(7, root=tmp_path).sockets == 2
    assert read_machine_details(7, root=tmp_path / "other").sockets is None


def test_the_details_of_this_machine_can_be_read(tmp_path: Path) -> None:
    details = read_machine_details(7)
    assert details.details.at == 7
    memory = details.details.memory
    assert (memory.limit or 0) > (memory.cache or 0) > 0
    assert (details.details.cpu.user_seconds or 0) > 0
    assert read_disk(tmp_path).device != ""
