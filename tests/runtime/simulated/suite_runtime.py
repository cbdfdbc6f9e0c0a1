"""The simulated runtime as the runtime suite drives it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from podstatus.kube.objects.pod import Pod
from podstatus.runtime.port import Runtime
from podstatus.runtime.simulated import SimulatedRuntime
from podstatus.testing.builders import make_pod
from podstatus.testing.clock import FakeClock
from podstatus.testing.runtime_suite import Behaviour, RuntimeSuite

SCRIPTS = {
    Behaviour.OBEYS: "run=forever",
    Behaviour.EXITS: "run=1s, exit=3",
    Behaviour.IGNORES: "stop=never",
    Behaviour.FAILS: "fail=StartError",
}


class Simulated(RuntimeSuite):
    @pytest.fixture(autouse=True)
    def _prepare(self, tmp_path: Path) -> None:
        self.prepare(tmp_path)

    def prepare(self, folder: Path) -> None:
        self.clock = FakeClock()
        self.folder = folder

    @asynccontextmanager
    async def open_runtime(self) -> AsyncIterator[Runtime]:
        yield SimulatedRuntime(self.clock, folder=self.folder)

    def make_pod(self, name: str, behaviour: Behaviour) -> Pod:
        return make_pod(name, annotations={"podstatus.dev/simulate": SCRIPTS[behaviour]})

    def now(self) -> float:
        return self.clock.now() / 1e9

    async def wait(self, seconds: float) -> None:
        await self.clock.advance(seconds)
