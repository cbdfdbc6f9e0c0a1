"""The example of a runtime keeps its promises, and the page about it shows it."""

import asyncio
import importlib
import shlex
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from podstatus.kube.containers import Container
from podstatus.kube.pod import Pod
from podstatus.kube.pod_spec import PodSpec
from podstatus.runtime.port import Runtime
from podstatus.testing.builders import make_pod
from podstatus.testing.runtime_suite import Behaviour, RuntimeSuite

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SCRIPTS = {
    Behaviour.OBEYS: "trap 'exit 0' TERM; touch {up}; while :; do sleep 0.01; done",
    Behaviour.EXITS: "touch {up}; sleep 1; exit 3",
    Behaviour.IGNORES: "trap '' TERM; touch {up}; exec sleep 600",
}


def load(module: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module(module)


class TestBatchRuntime(RuntimeSuite):
    @pytest.fixture(autouse=True)
    def _prepare(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        self.folder = tmp_path
        self.example = load("own_runtime", monkeypatch)
        yield
        end_all(load("batch_system", monkeypatch).BatchSystem(tmp_path / "batch"))

    @asynccontextmanager
    async def open_runtime(self) -> AsyncIterator[Runtime]:
        yield self.example.BatchRuntime(self.folder, slots=8)

    def make_pod(self, name: str, behaviour: Behaviour) -> Pod:
        command: tuple[str, ...] = ("/no/such/command",)
        if behaviour in SCRIPTS:
            script = SCRIPTS[behaviour].format(up=shlex.quote(str(self.folder / f"uid-{name}")))
            command = ("/bin/sh", "-c", script)
        spec = PodSpec(containers=(Container(name="app", command=command),))
        return structs.replace(make_pod(name), spec=spec)

    async def wait_until_up(self, pod: Pod) -> None:
        async with asyncio.timeout(60):
            while not (self.folder / pod.uid).exists():
                await self.wait(0.01)


def end_all(batch: Any) -> None:
    """Leave no process behind, whatever a test did."""
    for job in batch.jobs():
        batch.send(job.number, signal.SIGKILL)
