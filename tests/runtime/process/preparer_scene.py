"""A preparer with everything that it needs."""

import asyncio
from pathlib import Path

import pytest

from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.service import Service
from podstatus.kube.scalars.quantity import Quantity
from podstatus.runtime.port import CannotStartError
from podstatus.runtime.process.launch_preparer import ContainerPreparer
from podstatus.runtime.process.records.layout import PodFolder
from podstatus.runtime.process.records.models import PreparedCommand
from podstatus.runtime.process.sandbox.isolation import Bubblewrap
from podstatus.testing.clock import FakeClock
from tests.support.processes.process_pods import ObjectsInMemory, ServicesInMemory, pod_of

BWRAP = Bubblewrap(program="/usr/bin/bwrap", version="0", setpriv="/usr/bin/setpriv")


class Setting:
    """A preparer with its surroundings."""

    def __init__(
        self, root: Path, bubblewrap: Bubblewrap | None, services: tuple[Service, ...] = ()
    ) -> None:
        self.root = root
        self.objects = ObjectsInMemory()
        self.services = ServicesInMemory(services)
        self.clock = FakeClock()
        self.preparer = self.another(bubblewrap)

    def another(self, bubblewrap: Bubblewrap | None) -> ContainerPreparer:
        """Return the preparer of the next agent."""
        return ContainerPreparer(
            self.root,
            bubblewrap=bubblewrap,
            objects=self.objects,
            services=self.services,
            host_ips=lambda: ["10.0.0.1"],
            allocatable=lambda: {"cpu": Quantity("2")},
            hidden=[],
            clock=self.clock,
        )

    def start(self, pod: Pod, attempt: str = "1") -> PreparedCommand:
        """Prepare the pod and its first container."""
        place = PodFolder(self.root, pod.uid).container(attempt)

        async def prepare() -> PreparedCommand:
            await self.preparer.prepare_pod(pod)
            first = (pod.spec.containers or ())[0]
            return await self.preparer.prepare_container(pod, first, place)

        return asyncio.run(prepare())

    def refusal(self, pod: Pod) -> CannotStartError:
        """Return why the pod is not started."""
        with pytest.raises(CannotStartError) as refused:
            self.start(pod)
        return refused.value

    def refresh(self, pod: Pod) -> None:
        asyncio.run(self.preparer.refresh_pod(pod))

    def remove(self, pod: Pod) -> None:
        """Remove the pod with an agent that knows only the files."""
        asyncio.run(self.another(None).remove_pod(pod.uid))

    def pass_time(self, seconds: float) -> None:
        asyncio.run(self.clock.advance(seconds))

    @property
    def volumes(self) -> Path:
        return PodFolder(self.root, pod_of().uid).volumes
