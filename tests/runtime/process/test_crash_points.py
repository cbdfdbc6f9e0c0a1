"""The agent is killed before each step of a start and of a stop: the next agent completes it.

Steps are file, process and signal operations, counted by Python's audit hooks. The scenario is
repeated, each time with one more step.
"""

import asyncio
import itertools
import os
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

import psutil
import pytest
from msgspec import structs

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState
from podstatus.runtime.process.process_runtime import ProcessRuntime
from podstatus.testing.builders import make_pod
from tests.runtime.process.shim_on_trial import wait_for
from tests.support.processes.mortal_node import commands, processes_with
from tests.support.processes.process_runtime import need_bubblewrap, open_process_runtime

STEPS = ("os.mkdir", "os.rename", "os.posix_spawn", "os.link", "os.remove", "shutil.rmtree")
Life = Callable[[ProcessRuntime, Pod], Awaitable[None]]

isolations = pytest.mark.parametrize(
    "isolated", [pytest.param(True, marks=need_bubblewrap), False], ids=["bubblewrap", "none"]
)


def pod_that_sleeps(number: int) -> Pod:
    """A pod that is identified among all processes by its sleep duration and UID."""
    command = ("sleep", f"1000.{os.getpid()}{number:04}")
    container = Container(name="app", image="busybox", command=command)
    pod = make_pod(f"crash-{number}", uid=f"uid-{os.getpid()}-{number}")
    return structs.replace(pod, spec=PodSpec(containers=(container,)))


def containers_of(pod: Pod) -> list[int]:
    (container,) = pod.spec.containers or ()
    return [process.pid for process in commands(*container.command or ())]


def live(folder: Path, pod: Pod, life: Life, *, isolated: bool, steps: int) -> bool:
    """Run the scenario in a process that is killed after this many steps; return whether it was."""
    child = os.fork()
    if child == 0:
        try:
            _count_down(steps)
            asyncio.run(_live(folder, pod, life, isolated=isolated))
            os._exit(0)
        except BaseException:  # noqa: BLE001 - this process must not continue as a test
            traceback.print_exc()
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL)
    return status != 0


async def _live(folder: Path, pod: Pod, life: Life, *, isolated: bool) -> None:
    async with open_process_runtime(folder, isolated=isolated) as runtime:
        await life(runtime, pod)


def _count_down(steps: int) -> None:
    left = itertools.count(steps, -1)

    def count(event: str, _arguments: tuple[Any, ...] = ()) -> None:
        if event in STEPS and next(left) == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    send = signal.pidfd_send_signal

    def send_counted(*arguments: Any) -> None:
        count(STEPS[0])
        send(*arguments)

    mock.patch.object(signal, "pidfd_send_signal", send_counted).start()
    sys.addaudithook(count)


async def begin(runtime: ProcessRuntime, pod: Pod) -> None:
    """Keep a pod running, as an agent does."""
    (container,) = pod.spec.containers or ()
    await runtime.start_pod(pod)
    attempts = await attempts_at(runtime, pod)
    if attempts and attempts[0].state is ContainerRunState.RUNNING:
        return
    count = (attempts[0].restart_count or 0) + 1 if attempts else 0
    await runtime.start_container(pod, container, restart_count=count)


async def end(runtime: ProcessRuntime, pod: Pod) -> None:
    """Stop a pod, as an agent does, or what it finds of one that was deleted."""
    for attempt in await attempts_at(runtime, pod):
        await runtime.stop_container(pod.uid, attempt.id, grace_seconds=0)
        await runtime.remove_container(pod.uid, attempt.id)
    await runtime.remove_pod(pod.uid)


async def attempts_at(runtime: ProcessRuntime, pod: Pod) -> tuple[ContainerFacts, ...]:
    listed = await runtime.list_pods(pod.uid)
    return listed[0].facts.containers if listed else ()


async def check_running(runtime: ProcessRuntime, pod: Pod) -> None:
    await begin(runtime, pod)
    running = [a for a in await attempts_at(runtime, pod) if a.state is ContainerRunState.RUNNING]
    assert len(running) == 1
    assert len(containers_of(pod)) == 1
    # A shim of an interrupted start finds that it is not needed, and ends.
    wait_for(lambda: len(shims_of(pod)) == 1, named="the end of all shims but one")


def shims_of(pod: Pod) -> list[str]:
    names = []
    for process in processes_with("shim_program.py", f"/pods/{pod.uid}\0"):
        with suppress(psutil.NoSuchProcess):
            names.append(process.name())
    return [name for name in names if name == "podstatus-shim"]


def check_gone(folder: Path, pod: Pod) -> None:
    assert containers_of(pod) == []
    wait_for(lambda: not shims_of(pod), named="the end of all shims")
    assert list((folder / "pods").iterdir()) == []


def run(folder: Path, pod: Pod, life: Life, *, isolated: bool) -> None:
    asyncio.run(_live(folder, pod, life, isolated=isolated))


@pytest.mark.slow
@isolations
def test_a_start_that_was_interrupted_anywhere_is_finished_once(
    folder: Path, isolated: bool
) -> None:
    for steps in itertools.count():
        pod = pod_that_sleeps(steps)
        was_killed = live(folder, pod, begin, isolated=isolated, steps=steps)
        run(folder, pod, check_running, isolated=isolated)
        run(folder, pod, end, isolated=isolated)
        check_gone(folder, pod)
        if not was_killed:
            break
    assert steps > 8
    assert list((folder / "removed").iterdir()) == []


@pytest.mark.slow
@isolations
def test_an_end_that_was_interrupted_anywhere_is_finished(folder: Path, isolated: bool) -> None:
    for steps in itertools.count():
        pod = pod_that_sleeps(1000 + steps)
        run(folder, pod, begin, isolated=isolated)
        was_killed = live(folder, pod, end, isolated=isolated, steps=steps)
        run(folder, pod, end, isolated=isolated)
        check_gone(folder, pod)
        if not was_killed:
            break
    assert steps > 5
    assert list((folder / "removed").iterdir()) == []
