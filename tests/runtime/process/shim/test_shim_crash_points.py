"""A shim or monitor is killed before each of its steps: what ran counts, nothing hangs.

Steps are counted by Python's audit hooks, in the shim and in all processes that it forks. The
scenario is repeated, each time with one more step.
"""

import asyncio
import itertools
import os
from functools import partial
from pathlib import Path

import pytest
from msgspec import structs

from podstatus.kube.objects.containers import Container, VolumeMount
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState, SandboxState
from podstatus.kube.objects.volumes import HostPathVolumeSource, Volume
from podstatus.runtime.port import CannotStartError
from podstatus.runtime.process import shim_control, shim_program
from podstatus.runtime.process.process_runtime import ProcessRuntime
from podstatus.testing.builders import make_pod
from tests.runtime.process.shim_on_trial import DEADLINE, wait_for
from tests.support.processes.mortal_node import processes_with
from tests.support.processes.process_runtime import need_bubblewrap, open_process_runtime

pytestmark = pytest.mark.slow

MORTAL = """
import importlib, os, signal, sys

sys.path.append({home!r})
main = importlib.import_module("shim.main").main
STEPS = ("os.fork", "os.exec", "os.rename", "os.remove", "os.kill")
WRITES = os.O_WRONLY | os.O_RDWR
left, is_over = {steps}, False


def count(event, arguments):
    global left, is_over
    if is_over or not (event in STEPS or (event == "open" and arguments[2] & WRITES)):
        return
    left -= 1
    if left >= 0:
        return
    is_over = True  # of all those who come as far only one is killed
    try:
        os.close(os.open({mark!r}, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


sys.addaudithook(count)
sys.exit(main(sys.argv[1:]))
"""


def pod_that_tells(number: int, truth: Path, *, isolated: bool) -> Pod:
    """A pod that creates a folder at each start."""
    truth.mkdir()
    script = f"mktemp -d -p {truth} >/dev/null; exec sleep 600"
    container = Container(name="app", image="busybox", command=("/bin/sh", "-c", script))
    spec = PodSpec(containers=(container,))
    if isolated:  # visible anyway without isolation
        mount = VolumeMount(name="truth", mount_path=str(truth))
        volume = Volume(name="truth", host_path=HostPathVolumeSource(path=str(truth)))
        container = structs.replace(container, volume_mounts=(mount,))
        spec = PodSpec(containers=(container,), volumes=(volume,))
    pod = make_pod(f"crash-{number}", uid=f"shim-{os.getpid()}-{number}")
    return structs.replace(pod, spec=spec)


async def keep_running(runtime: ProcessRuntime, pod: Pod) -> ContainerFacts:
    """Start the container as an agent does, until it runs."""
    (container,) = pod.spec.containers or ()
    for _ in range(8):
        listed = await runtime.list_pods(pod.uid)
        facts = listed[0].facts if listed else None
        newest = facts.find_container("app") if facts is not None else None
        if newest is not None and newest.state is ContainerRunState.RUNNING:
            return newest
        try:
            if facts is None or SandboxState.READY not in [it.state for it in facts.sandboxes]:
                await runtime.start_pod(pod)
            count = 0 if newest is None else (newest.restart_count or 0) + 1
            await runtime.start_container(pod, container, restart_count=count)
        except CannotStartError:
            await asyncio.sleep(0.1)  # a pod worker waits longer
    raise AssertionError("it was tried 8 times, and does not run")


async def live(runtime: ProcessRuntime, pod: Pod, truth: Path) -> None:
    """Start the container, wait until it runs, stop it."""
    async with asyncio.timeout(DEADLINE):
        running = await keep_running(runtime, pod)
        # The shim may die after it reported the start and before the command did anything.
        while not (starts := _count(truth)):
            await asyncio.sleep(0.002)
            running = await keep_running(runtime, pod)
        # An attempt that was killed just before its record counts as well.
        assert starts <= (running.restart_count or 0) + 1 <= starts + 1
        await runtime.stop_container(pod.uid, running.id, grace_seconds=0)
        (listed,) = await runtime.list_pods(pod.uid)
        ended = listed.facts.find_container("app")
        assert ended is not None
        assert (ended.id, ended.state) == (running.id, ContainerRunState.EXITED)
        assert ended.exit_code in (137, 143)
        await runtime.remove_pod(pod.uid)


def _count(folder: Path) -> int:
    return len(list(folder.iterdir()))


def _has_left(pod: Pod) -> bool:
    return not processes_with("shim_program.py", f"/pods/{pod.uid}\0")


@pytest.mark.parametrize(
    "isolated", [pytest.param(True, marks=need_bubblewrap), False], ids=["bubblewrap", "none"]
)
async def test_a_kill_at_any_step_is_survived(
    folder: Path, isolated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = str(Path(shim_program.__file__).parent)
    runtime_folder = folder / "runtime"

    async def life(pod: Pod, truth: Path) -> None:
        async with open_process_runtime(runtime_folder, isolated=isolated) as runtime:
            await live(runtime, pod, truth)

    for steps in itertools.count():
        mark = folder / f"killed-{steps}"
        program = folder / f"shim_program.py-{steps}"
        program.write_text(MORTAL.format(home=home, steps=steps, mark=str(mark)))
        monkeypatch.setattr(shim_control, "_PROGRAM", program)
        truth = folder / f"truth-{steps}"
        pod = pod_that_tells(steps, truth, isolated=isolated)
        await life(pod, truth)
        wait_for(partial(_has_left, pod), named="the end of all shims")
        assert list((runtime_folder / "pods").iterdir()) == []
        if not mark.exists():
            break
    assert steps > 10
