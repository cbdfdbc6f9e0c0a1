"""The example runtime keeps its promises, and those that a queue adds."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from batch_system import BatchSystem, JobState, main
from msgspec import structs
from own_runtime import BatchRuntime
from test_own_runtime import TestBatchRuntime

from podstatus.kube.objects.containers import Container, EnvVar, EnvVarSource, VolumeMount
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.runtime_facts import ContainerRunState
from podstatus.runtime.port import CannotStartError, RuntimeDownError, RuntimePod
from podstatus.testing.builders import make_pod
from tests.support.processes.agent_process import until

__all__ = ["TestBatchRuntime"]

WAITING = ("sh", "-c", 'while [ ! -e "$0" ]; do sleep 0.02; done; exit 7')


@pytest.fixture
def batch(tmp_path: Path) -> Iterator[BatchSystem]:
    """A batch system with one slot for the runtimes of a test; its jobs are killed afterwards."""
    (tmp_path / "batch").mkdir()
    batch = BatchSystem(tmp_path / "batch", slots=1)
    yield batch
    for job in batch.jobs():
        batch.send(job.number, signal.SIGKILL)


@pytest.fixture
def runtime(tmp_path: Path, batch: BatchSystem) -> BatchRuntime:
    return BatchRuntime(tmp_path, slots=batch.slots)


def sleeper(name: str, *command: str, **more: object) -> Pod:
    container = Container(name="app", command=command or ("sleep", "600"))
    spec = PodSpec(containers=(structs.replace(container, **more),))
    return structs.replace(make_pod(name), spec=spec)


async def start(runtime: BatchRuntime, pod: Pod, restart_count: int = 0) -> str:
    await runtime.start_pod(pod)
    (container,) = pod.spec.containers or ()
    return await runtime.start_container(pod, container, restart_count=restart_count)


async def start_queued(runtime: BatchRuntime, pod: Pod) -> str:
    with pytest.raises(CannotStartError) as caught:
        await start(runtime, pod)
    assert caught.value.reason == "Queued"
    return caught.value.message


async def listed(runtime: BatchRuntime, uid: PodUID) -> RuntimePod:
    (found,) = await runtime.list_pods(uid)
    return found


async def eventually(look: Callable[[], object]) -> None:
    await asyncio.to_thread(until, look)


def states(batch: BatchSystem) -> list[tuple[int, str]]:
    return [(job.number, job.state.value) for job in batch.jobs()]


async def test_what_waits_in_the_queue_says_so_and_is_no_container_yet(
    runtime: BatchRuntime, batch: BatchSystem
) -> None:
    first, second = sleeper("first"), sleeper("second")
    first_id = await start(runtime, first)
    message = await start_queued(runtime, second)
    assert message == "job 2 waits for one of 1 slots"
    assert await start_queued(runtime, second) == message, "a second call is the same job"
    assert (await listed(runtime, second.uid)).facts.containers == ()
    await runtime.stop_container(first.uid, first_id, grace_seconds=5)
    await eventually(lambda: states(batch)[1] == (2, "running"))
    (found,) = (await listed(runtime, second.uid)).facts.containers
    assert (found.id, found.state) == ("batch://2", ContainerRunState.RUNNING)
    assert await start(runtime, second) == "batch://2"


@pytest.mark.parametrize("removed", [False, True])
async def test_a_pod_that_goes_while_it_is_queued_leaves_the_queue(
    runtime: BatchRuntime, batch: BatchSystem, *, removed: bool
) -> None:
    await start(runtime, sleeper("first"))
    second = sleeper("second")
    await start_queued(runtime, second)
    await (runtime.remove_pod if removed else runtime.stop_pod)(second.uid)
    left = [(1, "running")] if removed else [(1, "running"), (2, "cancelled")]
    assert states(batch) == left
    found = await runtime.list_pods(second.uid)
    assert [pod.facts.containers for pod in found] == ([] if removed else [()])


async def test_the_queue_is_served_in_its_order(
    runtime: BatchRuntime, batch: BatchSystem, tmp_path: Path
) -> None:
    await start(runtime, sleeper("first", *WAITING, str(tmp_path / "go")))
    for name in ("second", "third", "fourth"):
        await start_queued(runtime, sleeper(name, "true"))
    (tmp_path / "go").touch()
    await eventually(lambda: all(job.is_finished for job in batch.jobs()))
    began = [job.started for job in batch.jobs()]
    assert began == sorted(began)
    assert [job.exit_code for job in batch.jobs()] == [7, 0, 0, 0]


async def test_a_restart_waits_at_the_end_of_the_queue(
    runtime: BatchRuntime, batch: BatchSystem, tmp_path: Path
) -> None:
    pod = sleeper("first", *WAITING, str(tmp_path / "go"))
    await start(runtime, pod)
    await start_queued(runtime, sleeper("second"))
    (tmp_path / "go").touch()
    await eventually(lambda: states(batch) == [(1, "ended"), (2, "running")])
    with pytest.raises(CannotStartError, match="Queued: job 3 waits"):
        await start(runtime, pod, restart_count=1)
    (ended,) = (await listed(runtime, pod.uid)).facts.containers
    assert (ended.id, ended.exit_code) == ("batch://1", 7)


async def test_a_job_whose_runner_was_killed_is_unknown(
    runtime: BatchRuntime, batch: BatchSystem
) -> None:
    pod = sleeper("first")
    container_id = await start(runtime, pod)
    for process in runners(batch):
        orphans = process.children()
        process.kill()
        for orphan in orphans:
            orphan.kill()
    await eventually(lambda: states(batch) == [(1, "lost")])
    (found,) = (await listed(runtime, pod.uid)).facts.containers
    assert found.state is ContainerRunState.UNKNOWN
    await runtime.stop_container(pod.uid, container_id, grace_seconds=30)
    assert await start(runtime, pod, restart_count=1) == "batch://2"


def runners(batch: BatchSystem) -> list[psutil.Process]:
    running = psutil.process_iter(["cmdline"])
    return [process for process in running if str(batch.folder) in (process.info["cmdline"] or ())]


async def test_a_job_without_a_runner_is_run_by_the_next_start(
    runtime: BatchRuntime, batch: BatchSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod = sleeper("first")
    with monkeypatch.context() as patch:
        patch.setattr("batch_system.BatchSystem._start_runner", lambda *_: None)
        await start_queued(runtime, pod)
    assert await start(runtime, pod) == "batch://1"
    assert states(batch) == [(1, "running")]


async def test_many_who_submit_the_same_get_one_job(batch: BatchSystem) -> None:
    submits = [asyncio.to_thread(batch.submit, "same", ["true"], {}) for _ in range(5)]
    assert {job.number for job in await asyncio.gather(*submits)} == {1}
    until(lambda: states(batch) == [(1, "ended")])
    until(lambda: not runners(batch))


async def test_a_job_that_was_cancelled_is_submitted_again(
    runtime: BatchRuntime, batch: BatchSystem
) -> None:
    await start(runtime, sleeper("first"))
    second = sleeper("second")
    await start_queued(runtime, second)
    batch.send(2, signal.SIGTERM)
    await eventually(lambda: states(batch)[-1] == (2, "cancelled"))
    assert await start_queued(runtime, second) == "job 3 waits for one of 1 slots"
    await runtime.remove_pod(second.uid)
    assert states(batch) == [(1, "running")]


async def test_a_batch_system_that_does_not_answer_is_no_empty_one(
    runtime: BatchRuntime, batch: BatchSystem
) -> None:
    (batch.folder / "jobs").rename(batch.folder / "elsewhere")
    with pytest.raises(RuntimeDownError, match="the batch system does not answer"):
        await runtime.list_pods()
    (batch.folder / "elsewhere").rename(batch.folder / "jobs")


async def test_a_job_whose_runner_cannot_start_is_reported(
    runtime: BatchRuntime, batch: BatchSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("batch_system.__file__", str(batch.folder / "gone.py"))
    with pytest.raises(RuntimeDownError, match=r"job 1 has no runner: .* No such file"):
        await start(runtime, sleeper("first"))


def is_alive(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def test_what_a_job_started_ends_with_it(batch: BatchSystem, tmp_path: Path) -> None:
    script = f"sleep 600 & echo $! > {tmp_path}/pid; exit 0"
    batch.submit("forks", ["sh", "-c", script], {})
    until(lambda: states(batch) == [(1, "ended")])
    left = int((tmp_path / "pid").read_text())
    until(lambda: not is_alive(left))


async def test_words_and_variables_arrive_unchanged(
    runtime: BatchRuntime, batch: BatchSystem
) -> None:
    odd = "a 'b' \"c\" $(id) `id` \n\t*;\\"
    script = 'import os, sys; print(repr((sys.argv[1], dict(os.environ)["V"])))'
    pod = sleeper("odd", "python3", "-c", script, odd, env=(EnvVar(name="V", value=odd),))
    environment = EnvVar(name="PATH", value=os.environ["PATH"])
    (container,) = pod.spec.containers or ()
    container = structs.replace(container, env=(*(container.env or ()), environment))
    pod = structs.replace(pod, spec=PodSpec(containers=(container,)))
    await start(runtime, pod)
    until(lambda: states(batch) == [(1, "ended")])
    assert (batch.folder / "jobs" / "1" / "output").read_text() == f"{(odd, odd)!r}\n"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            {"env": (EnvVar(name="A", value_from=EnvVarSource()),)},
            "jobs do not support env.valueFrom",
        ),
        ({"volume_mounts": (VolumeMount(name="v"),)}, "jobs do not support volumeMounts"),
        ({"command": ()}, "job 1: no command"),
        ({"command": ("a\0b",)}, "job 1: embedded null byte"),
    ],
)
async def test_unsupported_fields_are_reported(
    runtime: BatchRuntime, more: dict[str, object], message: str
) -> None:
    with pytest.raises(CannotStartError, match=message):
        await start(runtime, sleeper("first", **more))


def test_a_uid_is_no_path(runtime: BatchRuntime, tmp_path: Path) -> None:
    pod = sleeper("odd")
    uid = PodUID("../../x")
    pod = structs.replace(pod, metadata=structs.replace(pod.metadata, uid=uid))
    asyncio.run(runtime.start_pod(pod))
    assert [path.parent for path in tmp_path.rglob("*.json")] == [tmp_path / "pods"]
    (found,) = asyncio.run(BatchRuntime(tmp_path).list_pods())
    assert found.uid == uid


def test_jobs_are_listed_on_the_command_line(
    batch: BatchSystem, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(batch.folder), "submit", "sh", "-c", "exit 3"])
    until(lambda: batch.jobs()[0].state is JobState.ENDED)
    main([str(batch.folder), "status"])
    number, header, row = capsys.readouterr().out.splitlines()
    assert (number, header.split()) == ("1", ["JOB", "STATE", "EXIT", "COMMENT"])
    assert row.split()[:3] == ["1", "ended", "3"]


def test_a_job_is_cancelled_on_the_command_line(
    batch: BatchSystem, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(batch.folder), "submit", "sleep", "600"])
    main([str(batch.folder), "cancel", "1"])
    until(lambda: batch.jobs()[0].is_finished)
    main([str(batch.folder), "status"])
    assert capsys.readouterr().out.splitlines()[-1].split()[:3] == ["1", "cancelled", "143"]
    with pytest.raises(LookupError, match="no job 2"):
        main([str(batch.folder), "cancel", "2"])
