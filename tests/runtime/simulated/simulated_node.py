"""A simulated runtime in virtual time that can be restarted."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import structs

from podstatus.kube.objects.containers import Container, Probe
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.runtime_facts import ContainerFacts, PodFacts
from podstatus.runtime.simulated import SimulatedRuntime
from podstatus.testing.builders import make_pod
from podstatus.testing.clock import FakeClock, run_ready_tasks

PROBED = Container(
    name="app", startup_probe=Probe(), readiness_probe=Probe(), liveness_probe=Probe()
)


class Node:
    """A simulated runtime in virtual time that can be restarted."""

    def __init__(self, folder: Path | None = None) -> None:
        self.clock = FakeClock()
        self.folder = folder
        self.random = random.Random(7)
        self.restart()

    def restart(self, *, network: str = "10.88.0.0/16") -> None:
        self.runtime = SimulatedRuntime(
            self.clock, folder=self.folder, random=self.random, network=network
        )

    async def start(
        self, script: str = "", name: str = "pod", *, restart_count: int = 0, probed: bool = False
    ) -> tuple[Pod, str]:
        pod = make_pod(name, annotations={"podstatus.dev/simulate": script})
        if probed:
            pod = structs.replace(pod, spec=structs.replace(pod.spec, containers=(PROBED,)))
        await self.runtime.start_pod(pod)
        return pod, await self.again(pod, restart_count=restart_count)

    async def again(self, pod: Pod, *, restart_count: int) -> str:
        (container,) = pod.spec.containers or ()
        return await self.runtime.start_container(pod, container, restart_count=restart_count)

    async def facts(self, pod: Pod) -> PodFacts:
        found = await self.runtime.list_pods(pod.uid)
        return found[0].facts if found else PodFacts()

    async def newest(self, pod: Pod) -> ContainerFacts:
        return (await self.facts(pod)).containers[0]

    @asynccontextmanager
    async def meanwhile(self, call: Awaitable[object]) -> AsyncIterator["asyncio.Future[object]"]:
        """Run a call in the background; it is cancelled in the end."""
        task = asyncio.ensure_future(call)
        await run_ready_tasks()
        yield task
        task.cancel()
        await asyncio.wait([task])
