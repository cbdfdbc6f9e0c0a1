"""The process runtime keeps every promise of the port, in both isolation modes."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec import structs

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.runtime.port import Runtime
from podstatus.runtime.process.records.layout import PodFolder
from podstatus.testing.builders import make_pod
from podstatus.testing.runtime_suite import Behaviour, RuntimeSuite
from tests.support.processes.process_runtime import need_bubblewrap, open_process_runtime

COMMANDS = {
    Behaviour.OBEYS: ("sh", "-c", 'trap "exit 0" TERM; echo up; sleep 600 & wait'),
    Behaviour.EXITS: ("sh", "-c", "echo up; sleep 1; exit 3"),
    Behaviour.IGNORES: ("sh", "-c", 'trap "" TERM; echo up; sleep 600'),
    Behaviour.FAILS: ("/no/such/command",),
}


class OnProcesses(RuntimeSuite):
    """The suite for both isolation modes."""

    isolated = False

    @pytest.fixture(autouse=True)
    def _folder(self) -> Iterator[None]:
        # Not below /tmp, since containers have their own /tmp.
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            self.folder = Path(folder)
            yield
            asyncio.run(self._clear())

    async def _clear(self) -> None:
        async with self.open_runtime() as runtime:
            for pod in await runtime.list_pods():
                await runtime.remove_pod(pod.uid)

    @asynccontextmanager
    async def open_runtime(self) -> AsyncIterator[Runtime]:
        async with open_process_runtime(self.folder, isolated=self.isolated) as runtime:
            yield runtime

    def make_pod(self, name: str, behaviour: Behaviour) -> Pod:
        container = Container(name="app", image="busybox", command=COMMANDS[behaviour])
        pod = make_pod(name, uid=f"uid-{name}")
        return structs.replace(pod, spec=PodSpec(containers=(container,)))

    async def wait_until_ready(self, pod: Pod) -> None:
        def is_up() -> bool:
            logs = PodFolder(self.folder, pod.uid).containers.glob("*/0.log")
            newest = max(logs, key=os.path.getmtime, default=None)
            return newest is not None and b" stdout F up" in newest.read_bytes()

        while not is_up():  # noqa: ASYNC110 - files have no notifications
            await asyncio.sleep(0.01)


class TestPlainProcesses(OnProcesses):
    """Without isolation of containers."""


@need_bubblewrap
class TestIsolatedProcesses(OnProcesses):
    """With bubblewrap as the isolation."""

    isolated = True
