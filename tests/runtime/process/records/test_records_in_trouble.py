"""Records stay usable after a power loss, and after the clock was set back."""

import asyncio
from pathlib import Path

import pytest
from msgspec import structs

from podstatus.base.system_clock import SystemClock
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState
from podstatus.runtime.process.process_runtime import ProcessRuntime
from podstatus.testing.builders import make_pod
from tests.support.processes.mortal_node import end_family, processes_with
from tests.support.processes.process_runtime import open_process_runtime

HOUR = 3600 * 10**9


class SetBack(SystemClock):
    """A clock that the test sets back."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead = 0

    def now(self) -> int:
        return super().now() + self.ahead


def pod_that_ends(code: int = 7) -> Pod:
    container = Container(name="app", image="busybox", command=("sh", "-c", f"exit {code}"))
    return structs.replace(make_pod("p", uid="uid.1/x"), spec=PodSpec(containers=(container,)))


async def attempts_at(runtime: ProcessRuntime, pod: Pod) -> tuple[ContainerFacts, ...]:
    listed = await runtime.list_pods(pod.uid)
    return listed[0].facts.containers if listed else ()


async def run_once(runtime: ProcessRuntime, pod: Pod, restart_count: int) -> None:
    """Run the pod's container to its end."""
    (container,) = pod.spec.containers or ()
    await runtime.start_pod(pod)
    id = await runtime.start_container(pod, container, restart_count=restart_count)
    while True:
        attempts = await attempts_at(runtime, pod)
        if any(a.id == id and a.state is ContainerRunState.EXITED for a in attempts):
            return
        await asyncio.sleep(0.01)


async def test_attempts_keep_their_order_when_the_clock_is_set_back(folder: Path) -> None:
    pod, clock = pod_that_ends(), SetBack()

    async with open_process_runtime(folder, isolated=False, clock=clock) as runtime:
        for count in range(4):
            await run_once(runtime, pod, count)
            clock.ahead -= HOUR
            counts = [attempt.restart_count for attempt in await attempts_at(runtime, pod)]
            assert counts == [count, count - 1][: count + 1]
        assert sorted((folder / "pods").glob("*/containers/*")) != []
    async with open_process_runtime(folder, isolated=False, clock=clock) as runtime:
        attempts = await attempts_at(runtime, pod)
        assert [attempt.restart_count for attempt in attempts] == [3, 2]
        assert attempts[0].created_at > attempts[1].created_at
        await runtime.remove_pod(pod.uid)


@pytest.mark.parametrize("text", [b"", b"\0" * 300, b'{"exit_code": "seven"}', b"[]"])
@pytest.mark.parametrize("record", ["pod", "shim", "launch", "started", "exit"])
def test_a_damaged_record_costs_no_more_than_itself(
    folder: Path, record: str, text: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    pod = pod_that_ends()

    async def live() -> None:
        async with open_process_runtime(folder, isolated=False) as runtime:
            await run_once(runtime, pod, 0)

    async def find() -> tuple[ContainerFacts, ...]:
        async with open_process_runtime(folder, isolated=False) as runtime:
            return await attempts_at(runtime, pod)

    async def go_on() -> None:
        async with open_process_runtime(folder, isolated=False) as runtime:
            await run_once(runtime, pod, 1)
            newest, *_ = await attempts_at(runtime, pod)
            assert (newest.restart_count, newest.exit_code) == (1, 7)
            await runtime.remove_pod(pod.uid)

    asyncio.run(live())
    end_family(processes_with("shim_program.py", str(folder)))  # simulates a power loss
    (damaged,) = folder.rglob(f"{record}.json")
    damaged.write_bytes(text)
    facts = asyncio.run(find())
    assert f"{damaged}.damaged" in caplog.text
    if record == "launch":
        assert facts == ()  # the record of the attempt is lost
    else:
        (attempt,) = facts
        assert attempt.state is ContainerRunState.EXITED
        assert attempt.exit_code == (137 if record == "exit" else 7)
    caplog.clear()
    assert asyncio.run(find()) == facts  # stable: the same at the next read
    if record != "pod":
        assert "damaged" not in caplog.text
    asyncio.run(go_on())
    assert list((folder / "pods").iterdir()) == []
