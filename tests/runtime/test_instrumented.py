"""An instrumented runtime behaves as before, offers the same protocols, and is counted."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from podstatus.kube.objects.cgroup_details import PodDetails
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.usage import DiskUsage, PodDiskUsage, Usage
from podstatus.runtime import port, streams
from podstatus.runtime.instrumented import instrument
from podstatus.runtime.port import CannotStartError, Runtime
from podstatus.runtime.simulated import SimulatedRuntime
from podstatus.testing.builders import make_pod
from podstatus.testing.clock import FakeClock
from tests.runtime.simulated.suite_runtime import Simulated
from tests.support.web.fake_runtime import FakeRuntime

OFFERS = tuple(
    kind
    for module in (port, streams)
    for kind in vars(module).values()
    if getattr(kind, "_is_runtime_protocol", False) and kind.__module__ == module.__name__
)
"""All optional protocols of a runtime."""


class Heard:
    """Records the operations it receives."""

    def __init__(self) -> None:
        self.operations: list[tuple[str, float, bool]] = []

    def runtime_operation(self, operation: str, seconds: float, *, failed: bool) -> None:
        self.operations.append((operation, seconds, failed))


class Plain:
    """A runtime with the eight methods only."""

    def __init__(self, runtime: Runtime) -> None:
        self.name, self.version = runtime.name, runtime.version
        self.start_pod, self.stop_pod = runtime.start_pod, runtime.stop_pod
        self.remove_pod, self.list_pods = runtime.remove_pod, runtime.list_pods
        self.start_container = runtime.start_container
        self.stop_container = runtime.stop_container
        self.remove_container = runtime.remove_container
        self.changes = runtime.changes


class Offering(Plain):
    """A runtime with all optional methods."""

    node_labels = {"isolated": "yes"}  # noqa: RUF012 - constant

    def image_message(self, image: str) -> str:
        return f"{image} is a label"

    async def usage(self) -> dict[PodUID, Usage]:
        return {PodUID("p"): Usage(at=1)}

    def container_usage(self) -> dict[PodUID, dict[str, Usage]]:
        return {PodUID("p"): {"app": Usage(at=1)}}

    def disk_usage(self) -> dict[PodUID, PodDiskUsage]:
        return {PodUID("p"): PodDiskUsage(at=1, total=DiskUsage())}

    def details_reader(self) -> Callable[[], dict[PodUID, PodDetails]]:
        return dict

    def system_usage(self) -> dict[str, Usage]:
        return {"runtime": Usage(at=1)}

    async def measure_disks(self) -> None: ...

    async def resize_pod(self, pod: Pod, containers: object) -> None: ...

    async def run_hook(self, uid: PodUID, container_id: str, hook: str) -> bool:
        return hook == "preStop"

    async def probe_results(self) -> AsyncIterator[object]:
        yield "a result"

    async def container_logs(self, *_: object) -> AsyncIterator[bytes]:
        yield b"a line"

    async def exec_sync(self, *_: object) -> str:
        return "a result"

    async def exec(self, *_: object) -> str:
        return "a session"

    async def attach(self, *_: object) -> str:
        return "another"


class TestMeasured(Simulated):
    """The wrapper still keeps every promise of a runtime."""

    @asynccontextmanager
    async def open_runtime(self) -> AsyncIterator[Runtime]:
        async with super().open_runtime() as runtime:
            yield instrument(runtime, Heard(), self.clock)


def runtimes() -> list[Any]:
    simulated = SimulatedRuntime(FakeClock())
    return [simulated, FakeRuntime(), Plain(simulated), Offering(simulated)]


@pytest.mark.parametrize("number", range(4))
def test_it_offers_what_the_runtime_offers_and_nothing_else(number: int) -> None:
    runtime = runtimes()[number]
    wrapped = instrument(runtime, Heard(), FakeClock())
    assert [isinstance(wrapped, it) for it in OFFERS] == [isinstance(runtime, it) for it in OFFERS]
    assert all(isinstance(wrapped, it) for it in OFFERS) is isinstance(runtime, Offering)


def test_all_that_a_runtime_may_offer_is_known() -> None:
    assert {kind.__name__ for kind in OFFERS} == {
        "PodStats",
        "ContainerStats",
        "DiskStats",
        "SystemStats",
        "DetailedStats",
        "ResizesPods",
        "NodeLabels",
        "DescribesImages",
        "RunsHooks",
        "ReportsProbes",
        "RunsCommands",
        "Logs",
        "Streaming",
    }


async def test_what_it_offers_is_passed_on() -> None:
    async def main() -> list[object]:
        it: Any = instrument(runtimes()[-1], heard, FakeClock())
        uid = PodUID("p")
        return [
            it.node_labels,
            it.image_message("nginx"),
            await it.usage(),
            it.container_usage(),
            it.system_usage(),
            it.details_reader()(),
            await it.resize_pod(make_pod("p"), {}),
            await it.run_hook(uid, "c", "preStop"),
            [result async for result in it.probe_results()],
            [line async for line in it.container_logs(uid, "c", None)],
            await it.exec(uid, "c", (), None),
            await it.attach(uid, "c", None),
        ]

    heard = Heard()
    assert await main() == [
        {"isolated": "yes"},
        "nginx is a label",
        {"p": Usage(at=1)},
        {"p": {"app": Usage(at=1)}},
        {"runtime": Usage(at=1)},
        {},
        None,
        True,
        ["a result"],
        [b"a line"],
        "a session",
        "another",
    ]
    assert [operation for operation, _, _ in heard.operations] == [
        "list_podsandbox_stats",
        "update_podsandbox_resources",
        "exec",
        "attach",
    ]


async def test_operations_are_counted_by_name_with_their_time_and_whether_they_failed() -> None:
    heard = Heard()
    clock = FakeClock()
    runtime = instrument(SimulatedRuntime(clock), heard, clock)
    script = {"podstatus.dev/simulate": "start=2s, fail=RunContainerError"}
    pod = make_pod("p", annotations=script)
    await runtime.start_pod(pod)
    container = (pod.spec.containers or ())[0]
    start = asyncio.create_task(runtime.start_container(pod, container, restart_count=0))
    await clock.advance(5)
    with pytest.raises(CannotStartError):
        await start
    await runtime.list_pods()
    await runtime.list_pods(pod.uid)
    await runtime.stop_pod(pod.uid)
    await runtime.remove_pod(pod.uid)
    assert heard.operations == [
        ("run_podsandbox", 0.0, False),
        ("start_container", 2.0, True),
        ("list_podsandbox", 0.0, False),
        ("podsandbox_status", 0.0, False),
        ("stop_podsandbox", 0.0, False),
        ("remove_podsandbox", 0.0, False),
    ]


async def test_an_operation_that_is_given_up_is_counted_and_has_not_failed() -> None:
    heard = Heard()
    clock = FakeClock()
    runtime = instrument(SimulatedRuntime(clock), heard, clock)
    pod = make_pod("p", annotations={"podstatus.dev/simulate": "start=1h"})
    await runtime.start_pod(pod)
    container = (pod.spec.containers or ())[0]
    start = asyncio.create_task(runtime.start_container(pod, container, restart_count=0))
    await clock.advance(7)
    start.cancel()
    await asyncio.gather(start, return_exceptions=True)
    assert heard.operations[-1] == ("start_container", 7.0, False)
