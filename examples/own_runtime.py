"""A runtime of your own: containers are jobs of a batch system.

    PYTHONPATH=examples podstatus run --runtime own_runtime:BatchRuntime

examples/batch_system.py is the stand-in for yours. docs/own-runtime.md leads here step by step,
and tests/runtime/test_own_runtime.py has the shipped suite check it.
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
LOOK_SECONDS = 0.05


class PodRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch system cannot know: that there is a pod, and which sandbox it is in."""

    uid: PodUID
    namespace: str
    name: str
    sandbox: int
    """Jobs share nothing, so a number will do."""
    ready: bool


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """What a job is about: kept with it in the batch system, as a comment."""

    uid: PodUID
    sandbox: int
    container: str
    restart_count: int
    image: str


def facts_of(attempt: Attempt, job: Job, *, active: bool) -> ps.ContainerFacts:
    """A job in the words of a container."""
    state, code = ps.ContainerRunState.EXITED, job.code
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
        message=job.why,
        image=attempt.image,
        restart_count=attempt.restart_count,
        active=active,
    )


def listed(pod: PodRecord, jobs: Sequence[tuple[Attempt, Job]]) -> RuntimePod:
    """A pod with its containers. A job that never left the queue is none."""
    state = ps.SandboxState.READY if pod.ready else ps.SandboxState.NOT_READY
    sandboxes = (ps.SandboxFacts(id=f"{pod.uid}-{pod.sandbox}", state=state, attempt=pod.sandbox),)
    attempts = tuple(
        facts_of(about, job, active=about.sandbox == pod.sandbox)
        for about, job in jobs
        if about.uid == pod.uid and job.state not in (JobState.QUEUED, JobState.CANCELLED)
    )
    facts = ps.PodFacts(sandboxes=sandboxes, containers=attempts)
    return RuntimePod(uid=pod.uid, namespace=pod.namespace, name=pod.name, facts=facts)


def refuse_what_jobs_lack(container: Container) -> None:
    """Say so instead of running it without. Raises CannotStartError."""
    variables = container.env or ()
    asked = {
        "env.valueFrom": [variable for variable in variables if variable.value_from],
        "envFrom": container.env_from,
        "volumeMounts": container.volume_mounts,  # automountServiceAccountToken: false, for one
    }
    if lacking := ", ".join(name for name, found in asked.items() if found):
        raise CannotStartError("CreateContainerConfigError", f"a job cannot have {lacking}")


async def in_thread(call: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
    """Call what blocks. A thread cannot be cancelled: what it does is waited for even then.

    Raises RuntimeDownError if the batch system does not do what it always should.
    """
    calling = asyncio.ensure_future(asyncio.to_thread(call, *args, **kwargs))
    try:
        return await asyncio.shield(calling)
    except asyncio.CancelledError:
        await asyncio.wait([calling])
        raise
    except OSError as error:
        raise RuntimeDownError(f"the batch system does not answer: {error}") from error


# --8<-- 1
class BatchRuntime:
    """Pods have a file each, containers are jobs."""

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
        """Have a sandbox for its jobs: the one that is ready, or one more."""
        known = self._pods.get(pod.uid)
        if known is None or not known.ready:
            self._save(
                PodRecord(
                    uid=pod.uid,
                    namespace=pod.namespace,
                    name=pod.name,
                    sandbox=known.sandbox + 1 if known else 0,
                    ready=True,
                )
            )

    async def list_pods(self, uid: PodUID | None = None) -> Sequence[RuntimePod]:
        """All pods, or this one, with their jobs."""
        jobs = await self._jobs()
        return [listed(pod, jobs) for pod in self._pods.values() if uid in (None, pod.uid)]

    async def _jobs(self, uid: PodUID | None = None) -> list[tuple[Attempt, Job]]:
        """Those of all pods, or of this one, the newest first."""
        jobs = reversed(await in_thread(self._batch.jobs))
        found = [(msgspec.json.decode(job.about, type=Attempt), job) for job in jobs]
        return [(about, job) for about, job in found if uid in (None, about.uid)]

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
        """Submit a job, unless this was done before; it runs, or has to wait in the queue."""
        about = Attempt(
            uid=pod.uid,
            sandbox=self._pods[pod.uid].sandbox,
            container=container.name,
            restart_count=restart_count,
            image=container.image,
        )
        refuse_what_jobs_lack(container)
        comment = msgspec.json.encode(about).decode()
        command = [*(container.command or ()), *(container.args or ())]
        env = {variable.name: variable.value for variable in container.env or ()}
        job = await in_thread(self._batch.submit, comment, command, env)
        if job.state is JobState.QUEUED:
            why = f"job {job.number} waits for one of {self._batch.slots} slots"
            raise CannotStartError("Queued", why)
        if job.state is JobState.FAILED:
            raise CannotStartError("RunContainerError", f"job {job.number}: {job.why}")
        return f"batch://{job.number}"

    # --8<-- 4
    async def stop_container(self, uid: PodUID, container_id: str, *, grace_seconds: float) -> None:
        """Ask its job to end, and make it end after the grace; a later call may shorten that."""
        for job in await self._find(uid, container_id):
            deadline = time.monotonic() + grace_seconds
            self._deadlines[job.number] = min(deadline, self._deadlines.get(job.number, deadline))
            await in_thread(self._batch.send, job.number, signal.SIGTERM)
            await self._see_end(job)

    async def stop_pod(self, uid: PodUID) -> None:
        """End its jobs at once; those in the queue leave it."""
        for _, job in await self._jobs(uid):
            self._deadlines[job.number] = 0.0
            await self._see_end(job)
        if uid in self._pods:
            self._save(structs.replace(self._pods[uid], ready=False))

    async def remove_container(self, uid: PodUID, container_id: str) -> None:
        """Forget its job, if that is over."""
        for job in await self._find(uid, container_id):
            await in_thread(self._batch.forget, job.number)

    async def remove_pod(self, uid: PodUID) -> None:
        """Forget its jobs, and the pod itself last: until then it is listed."""
        await self.stop_pod(uid)
        for _, job in await self._jobs(uid):
            await in_thread(self._batch.forget, job.number)
        self._path(uid).unlink(missing_ok=True)
        self._pods.pop(uid, None)

    async def _find(self, uid: PodUID, container_id: str) -> list[Job]:
        jobs = await self._jobs(uid)
        return [job for _, job in jobs if container_id == f"batch://{job.number}"]

    async def _see_end(self, job: Job | None) -> None:
        """Come back when it is over; from its deadline on it is made to be."""
        while job is not None and not job.is_over:
            if time.monotonic() >= self._deadlines.get(job.number, 0.0):
                await in_thread(self._batch.send, job.number, signal.SIGKILL)
            await asyncio.sleep(LOOK_SECONDS)
            job = await in_thread(self._batch.find, job.number)
        if job is not None:
            self._deadlines.pop(job.number, None)

    # --8<-- 5
    async def changes(self) -> AsyncIterator[PodUID]:
        """Listen to the bell of the batch system: it tells the numbers of jobs."""
        reader = asyncio.StreamReader()
        # Open for writing, too: so it does not end when the last of those who ring has gone.
        bell = self._batch.bell.open("rb+", buffering=0)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), bell
        )
        try:
            while True:
                job = await in_thread(self._batch.find, int(await reader.readline()))
                if job is not None:
                    yield msgspec.json.decode(job.about, type=Attempt).uid
        finally:
            transport.close()
