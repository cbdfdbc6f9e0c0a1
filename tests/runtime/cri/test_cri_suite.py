"""The CRI runtime keeps every promise of the port, on a real containerd."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec import structs

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.runtime.port import Runtime
from podstatus.testing.builders import make_pod
from podstatus.testing.runtime_suite import Behaviour, RuntimeSuite
from tests.support.processes.containerd import BUSYBOX, Containerd
from tests.support.processes.cri_runtime import open_cri_runtime

pytestmark = pytest.mark.containerd

COMMANDS = {
    Behaviour.OBEYS: ("/bin/sh", "-c", 'trap "exit 0" TERM; echo up; sleep 600 & wait'),
    Behaviour.EXITS: ("/bin/sh", "-c", "echo up; sleep 1; exit 3"),
    Behaviour.IGNORES: ("/bin/sh", "-c", 'trap "" TERM; echo up; sleep 600'),
    Behaviour.FAILS: ("/no/such/command",),
}


class TestOnContainerd(RuntimeSuite):
    """Changes are found by relisting: containerd 1.6 has no events."""

    reports_changes = False

    @pytest.fixture(autouse=True)
    def _containerd(self, containerd: Containerd, tmp_path: Path) -> None:
        self.endpoint = containerd.endpoint
        self.folder = tmp_path

    @asynccontextmanager
    async def open_runtime(self) -> AsyncIterator[Runtime]:
        async with open_cri_runtime(self.endpoint, self.folder) as runtime:
            yield runtime

    def make_pod(self, name: str, behaviour: Behaviour) -> Pod:
        container = Container(name="app", image=BUSYBOX, command=COMMANDS[behaviour])
        pod = make_pod(name, uid=f"uid-{name}")
        return structs.replace(pod, spec=PodSpec(containers=(container,)))

    async def wait_until_ready(self, pod: Pod) -> None:
        def is_up() -> bool:
            logs = self.folder.glob(f"logs/*_{pod.uid}/app/*.log")
            newest = max(logs, key=os.path.getmtime, default=None)
            return newest is not None and b" stdout F up" in newest.read_bytes()

        while not is_up():  # noqa: ASYNC110 - files have no notifications
            await asyncio.sleep(0.01)
