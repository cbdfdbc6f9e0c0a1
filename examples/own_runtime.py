"""A runtime of your own: containers are processes, and the processes are ours.

    python examples/own_runtime.py

It keeps every promise of the port but two: it remembers in memory, so its containers do not
outlive it, and it gives no hints, so an end is noticed by the next list, a second later.
tests/runtime/test_own_runtime.py has the shipped suite check it.
"""

import asyncio
import os
import signal
import subprocess
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from msgspec import structs

import podstatus as ps
from podstatus.kube.containers import Container
from podstatus.kube.pod import PodUID
from podstatus.kube.pod_spec import PodSpec
from podstatus.runtime.port import CannotStartError, RuntimePod
from podstatus.testing.builders import make_pod


class Attempt:
    """A process, and what is said about it."""

    def __init__(self, container: Container, restart_count: int) -> None:
        command = [*(container.command or ()), *(container.args or ())]
        # Its own session: signals reach all it has started, and Ctrl-C is not for it.
        self.process = subprocess.Popen(command, start_new_session=True)  # noqa: S603
        self.deadline = float("inf")
        self.facts = ps.ContainerFacts(
            id=f"own://{uuid.uuid4().hex}",
            name=container.name,
            state=ps.ContainerRunState.RUNNING,
            created_at=now(),
            started_at=now(),
            image=container.image,
            restart_count=restart_count,
        )

    def look(self) -> ps.ContainerFacts:
        """The facts as they are now."""
        code = self.process.poll()
        if code is not None and self.facts.state is ps.ContainerRunState.RUNNING:
            self.facts = structs.replace(
                self.facts,
                state=ps.ContainerRunState.EXITED,
                finished_at=now(),
                exit_code=code if code >= 0 else 128 - code,
                reason="Error" if code else "Completed",
            )
        return self.facts

    async def stop(self, grace_seconds: float) -> None:
        """Ask it to end, make it end after the grace; a later call may shorten that."""
        self.deadline = min(self.deadline, time.monotonic() + grace_seconds)
        self._send(signal.SIGTERM)
        while self.look().state is ps.ContainerRunState.RUNNING:
            if time.monotonic() >= self.deadline:
                self._send(signal.SIGKILL)
            await asyncio.sleep(0.02)

    def _send(self, number: int) -> None:
        # Once it was waited for, its number may be that of somebody else.
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)


# --8<-- docs/runtimes.md shows what follows
class OwnRuntime:
    """Pods by their UID, each with its attempts, the newest first."""

    name = "own"
    version = "0.1"

    def __init__(self, _folder: Path | None = None) -> None:
        self._pods: dict[PodUID, ps.Pod] = {}
        self._ready: set[PodUID] = set()
        self._attempts: dict[PodUID, list[Attempt]] = {}

    async def start_pod(self, pod: ps.Pod) -> None:
        """Its containers share nothing but that they belong to it."""
        if pod.uid not in self._ready:
            for attempt in self._attempts.get(pod.uid, []):
                attempt.facts = structs.replace(attempt.facts, active=False)
        self._pods[pod.uid] = pod
        self._ready.add(pod.uid)

    async def start_container(
        self, pod: ps.Pod, container: Container, *, restart_count: int
    ) -> str:
        """Start a process, unless this attempt was made before."""
        made = self._attempts.setdefault(pod.uid, [])
        for facts in (attempt.facts for attempt in made if attempt.facts.active):
            if (facts.name, facts.restart_count) == (container.name, restart_count):
                return facts.id
        try:
            made.insert(0, Attempt(container, restart_count))
        except (OSError, IndexError) as error:
            why = f"cannot start container {container.name!r}: {error}"
            raise CannotStartError("RunContainerError", why) from error
        return made[0].facts.id

    async def stop_container(self, uid: PodUID, container_id: str, *, grace_seconds: float) -> None:
        """Stop it, if it is there."""
        for attempt in self._attempts.get(uid, []):
            if attempt.facts.id == container_id:
                await attempt.stop(grace_seconds)

    async def remove_container(self, uid: PodUID, container_id: str) -> None:
        """Forget it, if it has ended."""
        for attempt in list(self._attempts.get(uid, [])):
            if attempt.facts.id == container_id and attempt.process.poll() is not None:
                self._attempts[uid].remove(attempt)

    async def stop_pod(self, uid: PodUID) -> None:
        """Stop all there is of it."""
        for attempt in self._attempts.get(uid, []):
            await attempt.stop(0)
        self._ready.discard(uid)

    async def remove_pod(self, uid: PodUID) -> None:
        """Forget all there is of it."""
        await self.stop_pod(uid)
        self._attempts.pop(uid, None)
        self._pods.pop(uid, None)

    async def list_pods(self, uid: PodUID | None = None) -> Sequence[RuntimePod]:
        """All pods, or this one."""
        return [self._listed(pod) for pod in self._pods.values() if uid in (None, pod.uid)]

    async def changes(self) -> AsyncIterator[PodUID]:
        """No hints: nothing ever comes."""
        await asyncio.Event().wait()
        yield PodUID("")

    def _listed(self, pod: ps.Pod) -> RuntimePod:
        ready = pod.uid in self._ready
        state = ps.SandboxState.READY if ready else ps.SandboxState.NOT_READY
        facts = ps.PodFacts(
            sandboxes=(ps.SandboxFacts(id=pod.uid, state=state),),
            containers=tuple(attempt.look() for attempt in self._attempts.get(pod.uid, [])),
        )
        return RuntimePod(uid=pod.uid, namespace=pod.namespace, name=pod.name, facts=facts)


# --8<-- until here


def now() -> ps.Time:
    """The time, as facts have it."""
    return ps.Time.from_unix_nanos(time.time_ns())


async def main() -> None:
    """Run a pod, stop it, and see what is known of it."""
    runtime = OwnRuntime()
    container = Container(name="app", command=("sleep", "600"))
    pod = structs.replace(make_pod("sleeper"), spec=PodSpec(containers=(container,)))
    await runtime.start_pod(pod)
    container_id = await runtime.start_container(pod, container, restart_count=0)
    await runtime.stop_container(pod.uid, container_id, grace_seconds=5)
    for listed in await runtime.list_pods():
        for found in listed.facts.containers:
            print(f"{listed.name}/{found.name}: {found.reason}, exit code {found.exit_code}")
    await runtime.remove_pod(pod.uid)


if __name__ == "__main__":
    asyncio.run(main())
