"""Resource usage of containers and pods."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from podstatus.base.pressure import Pressure, Stall
from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.usage import CpuThrottling, DiskUsage, MemoryUsage, PodDiskUsage
from podstatus.runtime.process.cgroups.pod_cgroups import Cgroups, unavailable_cgroups
from podstatus.runtime.process.records.models import ProcessIdentity
from podstatus.runtime.process.shim.processes import boot_id
from podstatus.runtime.process.state.process_identity import read_identity
from podstatus.runtime.process.state.process_table import ProcessRow, ProcessTable, read_processes
from podstatus.runtime.process.usage.collector import (
    PodUsage,
    RunningContainer,
    RunningContainers,
    UsageCollector,
)
from podstatus.runtime.process.usage.disk_usage import DiskUsageCache
from podstatus.testing.clock import FakeClock
from tests.runtime.process.cgroups.cgroup_scene import Machine

UID, OTHER = PodUID("uid-1"), PodUID("uid-2")
MI = 2**20


def row(
    pid: int,
    parent: int,
    *,
    own: float = 0.0,
    children: float = 0.0,
    threads: int = 1,
    memory: int = 0,
    start: int = 7,
    faults: tuple[int, int, int, int] = (0, 0, 0, 0),
) -> ProcessRow:
    """`faults`: its own and the major ones of them, those of reaped children and their major."""
    return ProcessRow(pid, parent, "S", start, own, children, threads, memory, *faults)


def running(id: str, pid: int, *, start: int = 7) -> RunningContainer:
    monitor = ProcessIdentity(pid=pid, start_ticks=start, boot_id=boot_id())
    return RunningContainer(id=id, monitor=monitor)


class Desk:
    """A usage collector over a simulated process table."""

    def __init__(self, cgroups: Cgroups | None = None) -> None:
        self.rows: Sequence[ProcessRow] = ()
        self.anonymous: dict[int, int] = {}
        self.shims: list[ProcessIdentity] = []
        self.looks = 0
        self._clock = FakeClock()
        self.disk = DiskUsage(bytes=4096)
        self.usage = UsageCollector(
            cgroups or unavailable_cgroups("none here"),
            _KnownUsage(lambda: self.disk),
            clock=self._clock,
            processes=self._look,
            some_processes=self._look_at,
        )

    def _look(self) -> ProcessTable:
        self.looks += 1
        return ProcessTable(self.rows, self.anonymous.get)

    def _look_at(self, pids: Iterable[int]) -> ProcessTable:
        chosen = set(pids)
        return ProcessTable((it for it in self.rows if it.pid in chosen), self.anonymous.get)

    def pass_time(self, seconds: float) -> None:
        asyncio.run(self._clock.advance(seconds))

    def read(self, containers: dict[str, RunningContainer]) -> PodUsage:
        return self.read_all({UID: containers})[UID]

    def read_all(self, pods: RunningContainers) -> dict[PodUID, PodUsage]:
        return asyncio.run(self.usage.read(pods, dict.fromkeys(pods, ()), self.shims))


class _KnownUsage(DiskUsageCache):
    def __init__(self, total: Callable[[], DiskUsage]) -> None:
        self._total = total

    def usage(self, pods: object) -> dict[PodUID, PodDiskUsage]:
        return {UID: PodDiskUsage(at=1, total=self._total())}


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_usage_is_the_sum_over_the_descendants_of_the_monitor(desk: Desk) -> None:
    desk.rows = [
        row(1, 0, own=999, memory=999),
        row(10, 1, own=5.0, children=1.0, memory=3 * MI),  # not the container
        row(11, 10, own=2.0, children=0.5, threads=3, memory=10 * MI),
        row(12, 11, own=0.25, memory=MI),
        row(13, 10, own=0.25, memory=MI),  # a daemon whose parent has ended
        row(20, 1, own=7.0, memory=7 * MI),
    ]
    used = desk.read({"app": running("c1", 10)})
    app = used.containers["app"]
    assert (app.cpu_seconds, app.memory_bytes, app.pids) == (4.0, 12 * MI, 5)
    assert app.cpu_cores is None
    assert (used.pod.cpu_seconds, used.pod.memory_bytes, used.pod.pids) == (4.0, 12 * MI, 5)
    assert used.pod.disk_bytes == 4096
    assert used.disk == PodDiskUsage(at=1, total=DiskUsage(bytes=4096))


def test_incomplete_disk_usage_is_unknown_as_a_figure(desk: Desk) -> None:
    desk.disk = DiskUsage(bytes=4096, is_complete=False)
    assert desk.read({}).pod.disk_bytes is None


def test_memory_and_page_faults_are_summed_over_the_processes(desk: Desk) -> None:
    desk.rows = [
        row(10, 1, memory=3 * MI, faults=(1000, 1000, 7, 2)),  # the monitor: only its children
        row(11, 10, memory=10 * MI, faults=(100, 10, 50, 5)),
        row(12, 11, memory=MI, faults=(1, 1, 0, 0)),
    ]
    desk.anonymous = {11: 4 * MI, 12: MI // 2}
    app = desk.read({"app": running("c1", 10)}).containers["app"]
    assert app.processes == 2
    assert app.memory == MemoryUsage(
        usage_bytes=11 * MI, rss_bytes=4 * MI + MI // 2, page_faults=158, major_page_faults=18
    )


def test_page_faults_of_ended_attempts_stay_with_the_pod(desk: Desk) -> None:
    desk.rows = [row(10, 1), row(11, 10, faults=(100, 10, 0, 0))]
    desk.read({"app": running("c1", 10)})
    desk.rows = [row(20, 1), row(21, 20, faults=(5, 1, 0, 0))]
    used = desk.read({"app": running("c2", 20)})
    assert used.containers["app"].memory.page_faults == 5
    assert (used.pod.memory.page_faults, used.pod.memory.major_page_faults) == (105, 11)


def test_the_runtime_is_its_shims_and_monitors_without_the_containers(desk: Desk) -> None:
    desk.shims = [running("", 5).monitor]
    desk.rows = [
        row(5, 1, own=1.0, children=99.0, memory=MI, faults=(3, 1, 900, 900)),
        row(10, 5, own=0.5, children=50.0, memory=MI, faults=(2, 0, 900, 900)),
        row(11, 10, own=50.0, memory=9 * MI),
    ]
    desk.anonymous = {5: MI // 2, 10: MI // 4}
    desk.read({"app": running("c1", 10)})
    runtime = desk.usage.system["runtime"]
    assert (runtime.cpu_seconds, runtime.memory_bytes, runtime.processes) == (1.5, 2 * MI, 2)
    assert runtime.memory == MemoryUsage(
        usage_bytes=2 * MI, rss_bytes=MI // 2 + MI // 4, page_faults=5, major_page_faults=1
    )
    desk.rows, desk.shims = [], []
    desk.pass_time(10)
    desk.read_all({})
    ended = desk.usage.system["runtime"]
    assert (ended.cpu_seconds, ended.cpu_cores, ended.memory_bytes) == (1.5, 0.0, 0)


def test_all_pods_together_continue_when_a_pod_is_gone(desk: Desk) -> None:
    desk.rows = [row(10, 1), row(11, 10, own=2.0, memory=MI), row(20, 1), row(21, 20, own=3.0)]
    desk.read_all({UID: {"app": running("c1", 10)}, OTHER: {"app": running("c2", 20)}})
    assert desk.usage.system["pods"].cpu_seconds == 5.0
    desk.rows = [row(10, 1), row(11, 10, own=4.0, memory=MI)]
    desk.pass_time(10)
    desk.read({"app": running("c1", 10)})
    pods = desk.usage.system["pods"]
    assert (pods.cpu_seconds, pods.memory_bytes) == (7.0, MI)
    assert pods.cpu_cores == pytest.approx(0.2)


def test_how_busy_they_are_shows_from_the_second_reading_on(desk: Desk) -> None:
    desk.rows = [row(10, 1), row(11, 10, own=1.0)]
    desk.read({"app": running("c1", 10)})
    desk.rows = [row(10, 1), row(11, 10, own=6.0)]
    desk.pass_time(10)
    used = desk.read({"app": running("c1", 10)})
    assert used.containers["app"].cpu_cores == 0.5
    assert used.pod.cpu_cores == 0.5


def test_a_new_attempt_starts_from_zero_and_the_pod_continues(desk: Desk) -> None:
    desk.rows = [row(10, 1), row(11, 10, own=8.0), row(20, 1), row(21, 20, own=1.0)]
    desk.read({"app": running("c1", 10), "side": running("s1", 20)})
    desk.rows = [row(20, 1), row(21, 20, own=2.0), row(30, 1), row(31, 30, own=0.5)]
    desk.pass_time(10)
    used = desk.read({"app": running("c2", 30), "side": running("s1", 20)})
    assert used.containers["app"].cpu_seconds == 0.5
    assert used.containers["app"].cpu_cores is None
    assert used.pod.cpu_seconds == 10.5
    assert used.pod.cpu_cores == pytest.approx(0.15)
    used = desk.read({})
    assert (used.pod.cpu_seconds, used.pod.memory_bytes, used.pod.pids) == (10.5, 0, 0)


def test_time_is_never_given_back(desk: Desk) -> None:
    desk.rows = [row(10, 1), row(11, 10, own=1.0), row(12, 11, own=4.0)]
    desk.read({"app": running("c1", 10)})
    desk.rows = [row(10, 1), row(11, 10, own=1.0)]  # process 12 was not reaped
    desk.pass_time(10)
    used = desk.read({"app": running("c1", 10)})
    assert used.containers["app"].cpu_seconds == 5.0
    assert used.containers["app"].cpu_cores == 0.0


def test_another_process_with_the_monitors_pid_is_not_counted(desk: Desk) -> None:
    desk.rows = [row(10, 1, start=8), row(11, 10, own=1.0)]
    used = desk.read({"app": running("c1", 10)})
    assert used.containers["app"].cpu_seconds is None
    assert used.containers["app"].memory_bytes is None
    assert used.pod.pids is None
    desk.rows = [row(10, 1), row(11, 10, own=1.0)]
    stale = running("c1", 10)
    stale = msgspec.structs.replace(
        stale, monitor=msgspec.structs.replace(stale.monitor, boot_id="another boot")
    )
    assert desk.read({"app": stale}).containers["app"].pids is None


def test_all_pods_take_one_look_at_the_processes(desk: Desk) -> None:
    desk.rows = [row(10, 1), row(11, 10, own=1.0), row(20, 1), row(21, 20, own=2.0)]
    used = desk.read_all({UID: {"app": running("c1", 10)}, OTHER: {"app": running("c2", 20)}})
    assert desk.looks == 1
    assert used[UID].pod.cpu_seconds == 1.0
    assert used[OTHER].pod.cpu_seconds == 2.0


def test_cgroups_are_asked_first_and_no_process_is_looked_at(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.cgroups.create(UID, "c1", ResourceRequirements())
    for folder, seconds in (("poduid-1", 9), ("poduid-1/c1", 3)):
        place = machine.base / folder
        (place / "cpu.stat").write_text(
            f"usage_usec {seconds}000000\nnr_periods 50\nnr_throttled 20\n"
        )
        (place / "memory.current").write_text(f"{10 * MI}\n")
        (place / "memory.stat").write_text(
            f"anon {5 * MI}\ninactive_file {4 * MI}\npgfault 70\npgmajfault 7\n"
        )
        (place / "memory.max").write_text(f"{20 * MI}\n")
        (place / "memory.swap.current").write_text("0\n")
        (place / "pids.current").write_text("2\n")
        (place / "io.pressure").write_text(
            "some avg10=1.50 avg60=0.25 avg300=0.00 total=12\n"
            "full avg10=0.50 avg60=0.00 avg300=0.00 total=3\n"
        )
    (machine.base / "poduid-1/c1/inside/cgroup.procs").write_text("11\n12\n")
    desk = Desk(machine.cgroups)
    used = desk.read({"app": running("c1", 10)})
    app = used.containers["app"]
    assert (app.cpu_seconds, app.memory_bytes, app.pids) == (3.0, 6 * MI, 2)
    assert app.memory == MemoryUsage(
        usage_bytes=10 * MI,
        rss_bytes=5 * MI,
        limit_bytes=20 * MI,
        page_faults=70,
        major_page_faults=7,
        swap_bytes=0,
        swap_limit_bytes=0,
    )
    assert app.processes == 2
    assert app.throttling == CpuThrottling(50, 20)
    assert app.pressure.io == Pressure(
        some=Stall(total_nanoseconds=12_000, avg10=1.5, avg60=0.25, avg300=0.0),
        full=Stall(total_nanoseconds=3_000, avg10=0.5, avg60=0.0, avg300=0.0),
    )
    assert app.pressure.cpu is None
    assert used.pod.cpu_seconds == 9.0  # including that of ended containers
    assert (used.pod.processes, used.pod.memory.rss_bytes) == (2, 5 * MI)
    assert desk.looks == 0


def test_what_a_cgroup_does_not_count_is_added_up(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "cpu")
    machine.cgroups.create(UID, "c1", ResourceRequirements())
    desk = Desk(machine.cgroups)
    desk.rows = [row(10, 1), row(11, 10, own=5.0, memory=MI)]
    used = desk.read({"app": running("c1", 10)})
    app = used.containers["app"]
    assert (app.cpu_seconds, app.memory_bytes, app.pids) == (0.0, MI, 1)
    assert (used.pod.memory_bytes, used.pod.pids) == (MI, 1)


def test_pods_that_are_gone_are_forgotten(desk: Desk) -> None:
    desk.rows = [row(10, 1), row(11, 10, own=1.0)]
    desk.read({"app": running("c1", 10)})
    assert desk.read_all({}) == {}
    desk.pass_time(10)
    again = desk.read({"app": running("c1", 10)})
    assert again.pod.cpu_cores is None, "a rate needs an earlier reading"


@contextmanager
def _family() -> Iterator["subprocess.Popen[str]"]:
    """A process with a child whose name contains parentheses."""
    program = (
        "import os, sys\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    with open('/proc/self/comm', 'w') as comm: comm.write('a) S 1 (b')\n"
        "    eaten = b'x' * (32 << 20); print(os.getpid(), flush=True)\n"
        "    sys.stdin.read(1); os._exit(0)\n"
        "os.waitpid(child, 0)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.communicate("x", timeout=90)


def test_the_processes_of_this_machine_are_read() -> None:
    with _family() as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        table = read_processes()
        monitor = read_identity(process.pid)
        assert monitor is not None
        parent = table.find(monitor)
        assert parent is not None
        assert parent.parent == os.getpid()
        (only,) = table.descendants(process.pid)
        assert only.pid == child
        assert only.threads == 1
        assert 32 * MI <= only.resident_bytes < 128 * MI
        assert child in {row.pid for row in table.descendants(os.getpid())}
