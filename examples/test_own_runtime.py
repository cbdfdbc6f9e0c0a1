"""The shipped suite on the example runtime: `pytest examples/test_own_runtime.py`."""

import asyncio
import shlex
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from batch_system import BatchSystem
from msgspec import structs
from own_runtime import BatchRuntime

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.runtime.port import Runtime
from podstatus.testing.builders import make_pod
from podstatus.testing.runtime_suite import Behaviour, RuntimeSuite

SCRIPTS = {
    Behaviour.OBEYS: "trap 'exit 0' TERM; touch {up}; while :; do sleep 0.01; done",
    Behaviour.EXITS: "touch {up}; sleep 1; exit 3",
    Behaviour.IGNORES: "trap '' TERM; touch {up}; exec sleep 600",
}


class TestBatchRuntime(RuntimeSuite):
    """One test for each promise of a runtime."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> Iterator[None]:
        self.folder = tmp_path
        yield
        batch = BatchSystem(tmp_path / "batch")
        for job in batch.jobs():
            batch.send(job.number, signal.SIGKILL)

    @asynccontextmanager
    async def open_runtime(self) -> AsyncIterator[Runtime]:
        """Open the runtime; a second time in one test, this is the next agent."""
        yield BatchRuntime(self.folder, slots=8)

    def make_pod(self, name: str, behaviour: Behaviour) -> Pod:
        """Return a pod with this behaviour: a command, and for FAILS a missing one."""
        up = shlex.quote(str(self.folder / f"uid-{name}"))
        script = SCRIPTS.get(behaviour, "").format(up=up)
        command = ("sh", "-c", script) if script else ("/no/such/command",)
        spec = PodSpec(containers=(Container(name="app", command=command),))
        return structs.replace(make_pod(name), spec=spec)

    async def wait_until_ready(self, pod: Pod) -> None:
        """Wait for the shell, which needs a moment to set its trap."""
        async with asyncio.timeout(60):
            while not (self.folder / pod.uid).exists():
                await self.wait(0.01)
