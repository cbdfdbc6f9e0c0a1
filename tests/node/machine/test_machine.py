"""Readings of the machine: usage, disk, identity, addresses."""

import asyncio
import ipaddress
import os
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec import structs

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.usage import MemoryUsage, Usage
from podstatus.node.decide.readings import CpuTimes, DiskReading, MachineReading, node_usage
from podstatus.node.machine import node_addresses as addresses
from podstatus.node.machine.node_addresses import node_addresses
from podstatus.node.machine.reader import DiskReader, read_disk, read_machine
from podstatus.node.machine.system_info import architecture, kubelet_version, read_system_info
from podstatus.node.machine.usage import NodeUsage, RuntimeUsage
from podstatus.node.settings import NodeSettings
from podstatus.testing.clock import FakeClock
from tests.node.scene import DISK, GI, MACHINE

UID = PodUID("pod-1")


def busy(seconds: float, total: float) -> MachineReading:
    return structs.replace(MACHINE, cpu=CpuTimes(seconds, total))


def test_this_machine_can_be_read(tmp_path: Path) -> None:
    machine = read_machine()
    assert machine.cores == os.cpu_count()
    assert 0 < machine.memory_available_bytes <= machine.memory_bytes
    assert 0 < machine.cpu.busy <= machine.cpu.total
    assert machine.pids > 0
    disk = read_disk(tmp_path)
    assert 0 < disk.available_bytes <= disk.total_bytes - disk.used_bytes


@pytest.mark.parametrize(
    ("before", "now", "cores"),
    [
        ((100, 400), (140, 480), 2.0),
        ((100, 400), (100, 440), 0.0),
        ((100, 400), (440, 740), 4.0 * 340 / 340),
        ((100, 400), (100, 400), None),
        ((100, 400), (10, 40), None),
    ],
)
def test_processors_are_busy_in_their_own_time(
    before: tuple[float, float], now: tuple[float, float], cores: float | None
) -> None:
    assert node_usage(busy(*now), busy(*before), at=7).cpu_cores == cores


def test_memory_that_could_be_given_back_is_not_used() -> None:
    usage = node_usage(MACHINE, None, at=7)
    assert usage == Usage(
        at=7,
        cpu_seconds=100.0,
        memory_bytes=2 * GI,
        disk_bytes=40 * GI,
        pids=300,
        memory=MemoryUsage(limit_bytes=8 * GI),
    )


class Pods:
    def __init__(self) -> None:
        self.fails = False

    async def __call__(self) -> Mapping[PodUID, Usage]:
        if self.fails:
            raise OSError("the runtime is down")
        return {UID: Usage(at=1, memory_bytes=5)}


async def test_node_and_pods_are_in_one_snapshot() -> None:
    pods = Pods()
    disk = DiskReader(Path("/"), read=lambda _: DISK)
    usage = NodeUsage(
        disk, clock=FakeClock(), runtime=RuntimeUsage(pods=pods), read=lambda: busy(1, 2)
    )
    first = await usage.sample_once()
    assert usage.snapshot is first
    assert first.machine.disk == DISK
    assert first.pods == {UID: Usage(at=1, memory_bytes=5)}


async def test_each_snapshot_has_its_own_containers() -> None:
    """Readers notice a new measurement by it, also if a runtime returns one mapping always."""
    shared = {UID: {"app": Usage(at=1, memory_bytes=5)}}
    disk = DiskReader(Path("/"), read=lambda _: DISK)
    usage = NodeUsage(
        disk,
        clock=FakeClock(),
        runtime=RuntimeUsage(containers=lambda: shared),
        read=lambda: busy(1, 2),
    )
    first, second = await usage.sample_once(), await usage.sample_once()
    assert first.containers == second.containers == shared
    assert first.containers is not second.containers


async def test_a_wall_clock_jump_does_not_disturb_the_forecast_of_a_full_disk() -> None:
    clock, used = FakeClock(), 40 * GI
    disk = DiskReader(
        Path("/"),
        read=lambda _: structs.replace(DISK, used_bytes=used, available_bytes=100 * GI - used),
    )
    usage = NodeUsage(disk, clock=clock, read=lambda: MACHINE)
    for minute in range(11):
        await usage.sample_once()
        await clock.advance(60)
        clock.step({5: -3600, 8: 7200}.get(minute, 0))
        used += GI
    assert usage.disk_full_in_seconds == pytest.approx(50 * 60)


async def test_a_failing_pod_usage_does_not_prevent_node_readings() -> None:
    pods = Pods()
    disk = DiskReader(Path("/"), read=lambda _: DISK)
    usage = NodeUsage(
        disk, clock=FakeClock(), runtime=RuntimeUsage(pods=pods), read=lambda: MACHINE
    )
    first = await usage.sample_once()
    pods.fails = True
    second = await usage.sample_once()
    assert second is not first
    assert second.pods == first.pods


async def test_snapshots_are_taken_once_a_period() -> None:
    clock, taken = FakeClock(), asyncio.Queue[int]()

    def read() -> MachineReading:
        taken.put_nowait(clock.now())
        return MACHINE

    disk = DiskReader(Path("/"), read=lambda _: DISK)
    beats: list[int] = []
    usage = NodeUsage(disk, clock=clock, read=read, heartbeat=lambda: beats.append(clock.now()))
    running = asyncio.create_task(usage.run())
    first = await taken.get()
    await clock.advance(10)
    assert await taken.get() - first == 10 * 10**9
    assert len(beats) == 2
    running.cancel()


async def test_a_machine_that_cannot_be_read_for_a_while_is_read_again() -> None:
    clock, taken = FakeClock(), asyncio.Queue[int]()

    def read() -> MachineReading:
        taken.put_nowait(clock.now())
        raise OSError(24, "Too many open files")

    disk = DiskReader(Path("/"), read=lambda _: DISK)
    usage = NodeUsage(disk, clock=clock, read=read)
    running = asyncio.create_task(usage.run())
    await taken.get()
    await clock.advance(10)
    async with asyncio.timeout(60):
        await taken.get()
    running.cancel()


def test_a_disk_that_hangs_is_a_problem_and_holds_up_nothing() -> None:
    released, asked = threading.Event(), list[Path]()

    def hang(folder: Path) -> DiskReading:
        asked.append(folder)
        released.wait()
        return DISK

    async def scene() -> None:
        disk = DiskReader(Path("/mnt"), read=hang, seconds=0.01)
        assert await disk.read_once() is None
        assert await disk.read_once() is None
        assert disk.problem() == "reading the disk of /mnt timed out after 0.01 s"
        assert len(asked) == 1
        released.set()
        while await disk.read_once() is None:
            pass
        assert disk.problem() is None

    asyncio.run(scene())


async def test_a_disk_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    disk = DiskReader(tmp_path / "gone")
    assert await disk.read_once() is None
    assert disk.problem() == (f"cannot read the disk of {tmp_path}/gone: No such file or directory")


def test_system_info_is_readable_without_root(tmp_path: Path) -> None:
    for path, text in {
        "etc/machine-id": "abc\n",
        "proc/sys/kernel/random/boot_id": "boot\n",
        "sys/class/dmi/id/product_uuid": "",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text)
    info = read_system_info(kubelet_version="v1", runtime_version="r://2", root=tmp_path)
    assert (info.machine_id, info.system_uuid, info.boot_id) == ("abc", "abc", "boot")
    assert (info.kubelet_version, info.container_runtime_version) == ("v1", "r://2")
    assert info.operating_system in ("linux", "darwin")
    assert info.os_image
    assert info.kernel_version


def test_what_cannot_be_read_is_empty(tmp_path: Path) -> None:
    info = read_system_info(kubelet_version="v1", runtime_version="r://2", root=tmp_path)
    assert (info.machine_id, info.system_uuid, info.boot_id) == ("", "", "")


@pytest.mark.parametrize(
    ("machine", "expected"), [("x86_64", "amd64"), ("aarch64", "arm64"), ("riscv64", "riscv64")]
)
def test_architectures_have_gos_names(
    monkeypatch: pytest.MonkeyPatch, machine: str, expected: str
) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert architecture() == expected


def test_the_version_is_the_kubelets_with_ours_as_metadata() -> None:
    assert kubelet_version("0.1.0") == "v1.36.4+podstatus.0.1.0"


def address_lines(settings: NodeSettings) -> list[str]:
    return [f"{it.type} {it.address}" for it in node_addresses(settings)]


def test_addresses_that_were_set_are_shown() -> None:
    settings = NodeSettings(name="n", hostname="host", node_ips=("10.0.0.7", "fd00::7"))
    assert address_lines(settings) == [
        "InternalIP 10.0.0.7",
        "InternalIP fd00::7",
        "Hostname host",
    ]


def test_a_hostname_that_is_an_address_is_one() -> None:
    assert address_lines(NodeSettings(name="10.0.0.8")) == [
        "InternalIP 10.0.0.8",
        "Hostname 10.0.0.8",
    ]


def test_an_address_is_found_where_none_was_set() -> None:
    internal, hostname = node_addresses(NodeSettings(name="n"))
    assert ipaddress.ip_address(internal.address)
    assert hostname.address == "n"


def test_a_machine_without_a_network_has_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "_UNROUTED_ADDRESSES", ())
    assert address_lines(NodeSettings(name="n")) == ["InternalIP 127.0.0.1", "Hostname n"]
