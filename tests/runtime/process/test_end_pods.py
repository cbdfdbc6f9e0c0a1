"""The pods that a stopped agent left: they are listed, and ended without it."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from msgspec import structs

from podstatus.base.system_clock import SystemClock
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.runtime.process.cgroups.pod_cgroups import unavailable_cgroups
from podstatus.runtime.process.leftovers import end_pods
from podstatus.runtime.process.records.layout import PodFolder
from podstatus.runtime.process.records.models import ShimRecord
from podstatus.runtime.process.shim.records import EXIT, STARTED
from podstatus.runtime.process.state.running_pods import running_pods
from podstatus.testing.builders import make_pod
from tests.support.processes.mortal_node import read
from tests.support.processes.process_runtime import open_process_runtime

READY = "touch {0}/$1; while :; do sleep 0.1; done"
POLITE = "trap 'touch {0}/stopped; exit 0' TERM; "
STUBBORN = "trap '' TERM; "


@pytest.fixture
async def left(tmp_path: Path) -> list[psutil.Process]:
    """The processes of a pod of two containers, without an agent."""
    ready = tmp_path / "ready"
    ready.mkdir()
    containers = tuple(
        Container(
            name=name,
            image="busybox",
            command=("sh", "-c", (trap + READY).format(ready), "sh", name),
        )
        for name, trap in (("polite", POLITE), ("stubborn", STUBBORN))
    )
    pod = structs.replace(make_pod("web", uid="uid-1"), spec=PodSpec(containers=containers))
    folder = tmp_path / "runtime"
    async with open_process_runtime(folder, isolated=False) as runtime:
        await runtime.start_pod(pod)
        for container in containers:
            await runtime.start_container(pod, container, restart_count=0)
        while len(list(ready.iterdir())) < 2:  # noqa: ASYNC110 - files have no notifications
            await asyncio.sleep(0.005)
    shim = psutil.Process(read(PodFolder(folder, pod.uid).shim, ShimRecord).process.pid)
    return [shim, *filter(is_lasting, shim.children(recursive=True))]


def is_lasting(process: psutil.Process) -> bool:
    """Whether it is not one of the sleeps of 0.1 s."""
    try:
        return process.name() != "sleep"
    except psutil.NoSuchProcess:
        return False


async def end(tmp_path: Path) -> None:
    cgroups = unavailable_cgroups("of a test")
    await end_pods(tmp_path / "runtime", cgroups, SystemClock(), grace_seconds=0.5)


def alive(processes: list[psutil.Process]) -> Iterator[psutil.Process]:
    """Those that run; the shim is a child of this process, and may be a zombie."""
    for process in processes:
        if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            yield process


async def test_all_processes_end_after_the_stop_signal_and_their_files_are_removed(
    tmp_path: Path, left: list[psutil.Process]
) -> None:
    assert running_pods(tmp_path / "runtime") == ["default/web"]
    assert len(list(alive(left))) == len(left) > 3
    await end(tmp_path)
    assert list(alive(left)) == []
    assert (tmp_path / "ready/stopped").exists()
    assert running_pods(tmp_path / "runtime") == []
    assert list((tmp_path / "runtime/pods").iterdir()) == []
    await end(tmp_path)  # nothing is left to end


async def test_containers_of_a_killed_shim_end(tmp_path: Path, left: list[psutil.Process]) -> None:
    os.kill(left[0].pid, signal.SIGKILL)
    await end(tmp_path)
    assert list(alive(left)) == []


def test_damaged_and_missing_records_are_no_running_pods(tmp_path: Path) -> None:
    assert running_pods(tmp_path) == []
    (tmp_path / "pods/uid-1").mkdir(parents=True)
    (tmp_path / "pods/uid-1/pod.json").write_text("damaged")
    assert running_pods(tmp_path) == []


def exit_records(tmp_path: Path) -> list[Path]:
    return [it.with_name(EXIT) for it in tmp_path.glob(f"runtime/pods/*/containers/*/{STARTED}")]


async def test_a_pod_whose_containers_have_exited_does_not_run(
    tmp_path: Path, left: list[psutil.Process]
) -> None:
    exits = exit_records(tmp_path)
    for path in exits:
        assert running_pods(tmp_path / "runtime") == ["default/web"]
        path.touch()
    assert running_pods(tmp_path / "runtime") == []
    assert list(alive(left)) == left
    for path in exits:
        path.unlink()
    await end(tmp_path)
