"""The shipped suite on the simulated runtime: virtual and real time, with and without a folder."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from podstatus.base.system_clock import SystemClock
from podstatus.runtime.port import Runtime
from podstatus.runtime.simulated import SimulatedRuntime
from podstatus.testing.runtime_suite import RuntimeSuite
from tests.runtime.simulated.suite_runtime import Simulated


class TestInVirtualTime(Simulated):
    pass


class TestInRealTime(Simulated):
    now = RuntimeSuite.now
    wait = RuntimeSuite.wait

    @asynccontextmanager
    async def open_runtime(self) -> AsyncIterator[Runtime]:
        yield SimulatedRuntime(SystemClock(), folder=self.folder)


class TestWithoutAFolder(Simulated):
    persists_records = False

    @asynccontextmanager
    async def open_runtime(self) -> AsyncIterator[Runtime]:
        yield SimulatedRuntime(self.clock)
