"""Starts of containers whose shim or monitor is being killed."""

import asyncio
import os
import resource
import signal
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.runtime.port import CannotStartError
from podstatus.runtime.process.process_runtime import ProcessRuntime
from podstatus.runtime.process.records.layout import PodFolder
from podstatus.runtime.process.records.models import ShimRecord
from podstatus.testing.builders import make_pod
from tests.support.processes.mortal_node import read
from tests.support.processes.process_runtime import open_process_runtime

_APP = Container(name="app", image="busybox", command=("sleep", "600"))
_POD = structs.replace(make_pod("web", uid="uid-1"), spec=PodSpec(containers=(_APP,)))


def _pid_of_shim(folder: PodFolder) -> int:
    return read(folder.shim, ShimRecord).process.pid


async def _start_with_stopped_shim(
    runtime: ProcessRuntime, folder: PodFolder
) -> tuple[int, asyncio.Future[str]]:
    """Request a start while the shim is stopped; return the shim's pid and the pending start."""
    await runtime.start_pod(_POD)
    shim = _pid_of_shim(folder)
    os.kill(shim, signal.SIGSTOP)
    starting = asyncio.ensure_future(runtime.start_container(_POD, _APP, restart_count=0))
    while not list(folder.containers.glob("*/launch.json")):  # noqa: ASYNC110 - files have no notifications
        await asyncio.sleep(0.001)
    return shim, starting


async def test_what_it_never_began_is_no_attempt(tmp_path: Path) -> None:
    folder = PodFolder(tmp_path, _POD.uid)

    async with open_process_runtime(tmp_path, isolated=False) as runtime:
        shim, starting = await _start_with_stopped_shim(runtime, folder)
        os.kill(shim, signal.SIGKILL)
        with pytest.raises(CannotStartError, match="monitor has ended"):
            await starting
        (listed,) = await runtime.list_pods()
        assert listed.facts.containers == ()
        assert list(folder.containers.iterdir()) == []
        # In another sandbox it is started as if for the first time.
        await runtime.start_pod(_POD)
        await runtime.start_container(_POD, _APP, restart_count=0)
        (listed,) = await runtime.list_pods()
        assert [attempt.restart_count for attempt in listed.facts.containers] == [0]
        await runtime.remove_pod(_POD.uid)


@pytest.mark.parametrize("rebooted", [False, True])
def test_what_was_never_begun_when_all_were_killed_is_no_attempt(
    tmp_path: Path, rebooted: bool
) -> None:
    folder = PodFolder(tmp_path, _POD.uid)

    async def before() -> int:
        async with open_process_runtime(tmp_path, isolated=False) as runtime:
            shim, starting = await _start_with_stopped_shim(runtime, folder)
            starting.cancel()
            os.kill(shim, signal.SIGKILL)
            return shim

    async def after() -> list[int | None]:
        async with open_process_runtime(tmp_path, isolated=False) as runtime:
            (listed,) = await runtime.list_pods()
            await runtime.remove_pod(_POD.uid)
            return [attempt.restart_count for attempt in listed.facts.containers]

    os.waitpid(asyncio.run(before()), 0)
    if rebooted:  # then it is unknown what had run
        record = read(folder.shim, ShimRecord)
        process = structs.replace(record.process, boot_id="another")
        folder.shim.write_bytes(msgspec.json.encode(structs.replace(record, process=process)))
    assert asyncio.run(after()) == ([0] if rebooted else [])


async def test_a_command_that_ran_is_an_attempt_even_without_a_record(tmp_path: Path) -> None:
    folder, ran = PodFolder(tmp_path, _POD.uid), tmp_path / "ran"

    async with open_process_runtime(tmp_path, isolated=False) as runtime:
        await runtime.start_pod(_POD)
        shim = _pid_of_shim(folder)
        # No file can be written, as on a full disk, not even the start record.
        _, most = resource.prlimit(shim, resource.RLIMIT_FSIZE)
        resource.prlimit(shim, resource.RLIMIT_FSIZE, (0, most))
        murderer = _running(f"mkdir {ran}; kill -KILL {shim}; exec sleep 600")
        with pytest.raises(CannotStartError, match="monitor has ended"):
            await runtime.start_container(_POD, murderer, restart_count=0)
        assert ran.exists()
        (listed,) = await runtime.list_pods()
        ends = [(it.restart_count, it.exit_code, it.reason) for it in listed.facts.containers]
        assert ends == [(0, 137, "ContainerStatusUnknown")]
        await runtime.remove_pod(_POD.uid)


async def test_a_container_that_kills_its_monitor_can_be_started_again(tmp_path: Path) -> None:
    murderer = _running("kill -KILL $PPID; exec sleep 600")

    async with open_process_runtime(tmp_path, isolated=False) as runtime:
        await runtime.start_pod(_POD)
        for attempt in range(2):
            # Whether its monitor could record it before is undefined.
            with suppress(CannotStartError):
                await runtime.start_container(_POD, murderer, restart_count=attempt)
            (listed,) = await runtime.list_pods()
            numbers = [attempt.restart_count for attempt in listed.facts.containers]
            assert numbers == list(range(attempt, -1, -1))
        await runtime.remove_pod(_POD.uid)


def _running(script: str) -> Container:
    return structs.replace(_APP, command=("/bin/sh", "-c", script))
