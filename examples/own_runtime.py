"""A custom runtime: containers are jobs of a batch system.

    PYTHONPATH=examples podstatus run --runtime own_runtime:BatchRuntime

examples/batch_system.py stands in for a real batch system. docs/tutorials/write-a-runtime.md
develops this file step by step, and tests/runtime/test_own_runtime.py runs the shipped suite on it.
"""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar
from urllib.parse import quote

import msgspec
from batch_system import BatchSystem, Job, JobState
from msgspec import structs

import podstatus as ps
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.port import CannotStartError, RuntimeDownError, RuntimePod

P = ParamSpec("P")
Result = TypeVar("Result")
POLL_SECONDS = 0.05


class PodRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the batch system does not know: that a pod exists, and its current sandbox."""

    uid: PodUID
    namespace: str
    name: str
    sandbox: int
    """Jobs share nothing, so a number is sufficient."""
    ready: bool


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """Identifies the container of a job; stored in the batch system as the job's comment."""

    uid: PodUID
    sandbox: int
    container: str
    restart_count: int
    image: str


def container_facts(attempt: Attempt, job: Job, *, active: bool) -> ps.ContainerFacts:
    """Translate a job into the facts of a container."""
    state, code = ps.ContainerRunState.EXITED, job.exit_code
    reason = "Error" if code else "Completed"
    match job.state:
        case JobState.RUNNING:
            state, reason = ps.ContainerRunState.RUNNING, ""
        case JobState.LOST:
            state, reason = ps.ContainerRunState.UNKNOWN, ""
        case JobState.FAILED:
            reason, code = "StartError", 128
    return ps.ContainerFacts(
        id=f"batch://{job.number}",
        name=attempt.container,
        state=state,
        created_at=ps.Time.from_unix_nanos(job.submitted),
        started_at=ps.Time.from_unix_nanos(job.started),
        finished_at=ps.Time.from_unix_nanos(job.ended),
        exit_code=code,
        reason=reason,
        message=job.error,
        image=attempt.image,
        restart_count=attempt.restart_count,
        active=active,
    )


def runtime_pod(pod: PodRecord, jobs: Sequence[tuple[Attempt, Job]]) -> RuntimePod:
    """Return a pod with its containers. A job that never left the queue is not a container."""
    state = ps.SandboxState.READY if pod.ready else ps.SandboxState.NOT_READY
    sandboxes = (ps.SandboxFacts(id=f"{pod.uid}-{pod.sandbox}", state=state, attempt=pod.sandbox),)
    containers = tuple(
        container_facts(attempt, job, active=attempt.sandbox == pod.sandbox)
        for attempt, job in jobs
        if attempt.uid == pod.uid and job.state not in (JobState.QUEUED, JobState.CANCELLED)
    )
    facts = ps.PodFacts(sandboxes=sandboxes, containers=containers)
    return RuntimePod(uid=pod.uid, namespace=pod.namespace, name=pod.name, facts=facts)


def check_supported(container: Container) -> None:
    """Reject fields that a job cannot have. Raises CannotStartError."""
    variables = container.env or ()
    fields = {
        "env.valueFrom": [variable for variable in variables if variable.value_from],
        "envFrom": container.env_from,
        "volumeMounts": container.volume_mounts,  # so set automountServiceAccountToken: false
    }
    if unsupported := ", ".join(name for name, value in fields.items() if value):
        message = f"jobs do not support {unsupported}"
        raise CannotStartError("CreateContainerConfigError", message)


async def in_thread(call: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
    """Run a blocking call in a thread. On cancellation, wait for it: a thread cannot be cancelled.

    Raises RuntimeDownError if the batch system fails.
    """
    task = asyncio.ensure_future(asyncio.to_thread(call, *args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
    except OSError as error:
        raise RuntimeDownError(f"the batch system does not answer: {error}") from error


# --8<-- 1
class BatchRuntime:
    """Runs containers as jobs; each pod has a record file."""

    name = "batch"
    version = "0.1"

    def __init__(self, folder: Path, *, slots: int = 2) -> None:
        self._batch = BatchSystem(folder / "batch", slots=slots)
        self._folder = folder / "pods"
        self._folder.mkdir(mode=0o700, exist_ok=True)
        texts = [path.read_bytes() for path in self._folder.glob("*.json")]
        records = [msgspec.json.decode(text, type=PodRecord) for text in texts]
        self._pods = {record.uid: record for record in records}
        self._deadlines: dict[int, float] = {}

    # --8<-- 2
    async def start_pod(self, pod: ps.Pod) -> None:
        """Create a sandbox for the pod's jobs, unless it has a ready one."""
        record = self._pods.get(pod.uid)
        if record is None or not record.ready:
            self._save(
                PodRecord(
                    uid=pod.uid,
                    namespace=pod.namespace,
                    name=pod.name,
                    sandbox=record.sandbox + 1 if record else 0,
                    ready=True,
                )
            )

    async def list_pods(self, uid: PodUID | None = None) -> Sequence[RuntimePod]:
        """Return all pods, or `uid` only, with their jobs."""
        jobs = await self._jobs()
        return [runtime_pod(pod, jobs) for pod in self._pods.values() if uid in (None, pod.uid)]

    async def _jobs(self, uid: PodUID | None = None) -> list[tuple[Attempt, Job]]:
        """Return the jobs of all pods, or of `uid` only, newest first."""
        jobs = reversed(await in_thread(self._batch.jobs))
        attempts = [(msgspec.json.decode(job.comment, type=Attempt), job) for job in jobs]
        return [(attempt, job) for attempt, job in attempts if uid in (None, attempt.uid)]

    def _save(self, record: PodRecord) -> None:
        path = self._path(record.uid)
        path.with_suffix(".new").write_bytes(msgspec.json.encode(record))
        path.with_suffix(".new").rename(path)
        self._pods[record.uid] = record

    def _path(self, uid: PodUID) -> Path:
        return self._folder / f"{quote(uid, safe='')}.json"

    # --8<-- 3
    async def start_container(
        self, pod: ps.Pod, container: Container, *, restart_count: int
    ) -> str:
        """Submit a job, unless it exists; return its ID if it runs. Raises CannotStartError."""
        attempt = Attempt(
            uid=pod.uid,
            sandbox=self._pods[pod.uid].sandbox,
            container=container.name,
            restart_count=restart_count,
            image=container.image,
        )
        check_supported(container)
        comment = msgspec.json.encode(attempt).decode()
        command = [*(container.command or ()), *(container.args or ())]
        env = {variable.name: variable.value for variable in container.env or ()}
        job = await in_thread(self._batch.submit, comment, command, env)
        if job.state is JobState.QUEUED:
            message = f"job {job.number} waits for one of {self._batch.slots} slots"
            raise CannotStartError("Queued", message)
        if job.state is JobState.FAILED:
            raise CannotStartError("RunContainerError", f"job {job.number}: {job.error}")
        return f"batch://{job.number}"

    # --8<-- 4
    async def stop_container(self, uid: PodUID, container_id: str, *, grace_seconds: float) -> None:
        """Send SIGTERM, SIGKILL after the grace period; a later call may shorten the period."""
        for job in await self._find(uid, container_id):
            deadline = time.monotonic() + grace_seconds
            self._deadlines[job.number] = min(deadline, self._deadlines.get(job.number, deadline))
            await in_thread(self._batch.send, job.number, signal.SIGTERM)
            await self._wait_finished(job)

    async def stop_pod(self, uid: PodUID) -> None:
        """Kill the pod's jobs; queued jobs leave the queue."""
        for _, job in await self._jobs(uid):
            self._deadlines[job.number] = 0.0
            await self._wait_finished(job)
        if uid in self._pods:
            self._save(structs.replace(self._pods[uid], ready=False))

    async def remove_container(self, uid: PodUID, container_id: str) -> None:
        """Remove the job of a container, if it has finished."""
        for job in await self._find(uid, container_id):
            await in_thread(self._batch.remove, job.number)

    async def remove_pod(self, uid: PodUID) -> None:
        """Remove the pod's jobs, then the pod itself: until then it is listed."""
        await self.stop_pod(uid)
        for _, job in await self._jobs(uid):
            await in_thread(self._batch.remove, job.number)
        self._path(uid).unlink(missing_ok=True)
        self._pods.pop(uid, None)

    async def _find(self, uid: PodUID, container_id: str) -> list[Job]:
        jobs = await self._jobs(uid)
        return [job for _, job in jobs if container_id == f"batch://{job.number}"]

    async def _wait_finished(self, job: Job | None) -> None:
        """Wait until the job has finished; kill it from its deadline on."""
        while job is not None and not job.is_finished:
            if time.monotonic() >= self._deadlines.get(job.number, 0.0):
                await in_thread(self._batch.send, job.number, signal.SIGKILL)
            await asyncio.sleep(POLL_SECONDS)
            job = await in_thread(self._batch.find, job.number)
        if job is not None:
            self._deadlines.pop(job.number, None)

    # --8<-- 5
    async def changes(self) -> AsyncIterator[PodUID]:
        """Yield the pod of each job that starts or ends, as the batch system reports it."""
        reader = asyncio.StreamReader()
        # Opened for writing, too, the pipe has no end of file when the last writer closes it.
        pipe = self._batch.events.open("rb+", buffering=0)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), pipe
        )
        try:
            while True:
                job = await in_thread(self._batch.find, int(await reader.readline()))
                if job is not None:
                    yield msgspec.json.decode(job.comment, type=Attempt).uid
        finally:
            transport.close()
