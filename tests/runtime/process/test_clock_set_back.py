"""After the clock is set back, the newest attempt still counts as the newest."""

import asyncio
import time
from pathlib import Path

from msgspec import structs

from podstatus.base.system_clock import SystemClock
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState
from podstatus.runtime.port import Runtime
from podstatus.testing.builders import make_pod
from tests.support.processes.process_runtime import open_process_runtime

_HOUR = 3600 * 10**9
_ENDS = Container(name="app", image="busybox", command=("sh", "-c", "exit 3"))
_RUNS = Container(name="app", image="busybox", command=("sleep", "600"))
_POD = structs.replace(make_pod("web", uid="uid-1"), spec=PodSpec(containers=(_RUNS,)))


class SetBack(SystemClock):
    hours = 0

    def now(self) -> int:
        return time.time_ns() - self.hours * _HOUR


async def attempts(runtime: Runtime) -> list[ContainerFacts]:
    (pod,) = await runtime.list_pods()
    return list(pod.facts.containers)


async def test_what_was_started_after_the_clock_was_set_back_is_newer(tmp_path: Path) -> None:
    clock = SetBack()
    async with open_process_runtime(tmp_path, isolated=False, clock=clock) as runtime:
        await runtime.start_pod(_POD)
        await runtime.start_container(_POD, _ENDS, restart_count=0)
        # Polling: this runtime has no subscriber here.
        while (await attempts(runtime))[0].state is not ContainerRunState.EXITED:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        clock.hours = 1
        for count in (1, 2):
            await runtime.start_container(_POD, _RUNS, restart_count=count)
    # The next agent lists the same.
    async with open_process_runtime(tmp_path, isolated=False, clock=clock) as runtime:
        found = await attempts(runtime)
        assert [attempt.restart_count for attempt in found] == [2, 1]
        created = [attempt.created_at for attempt in found]
        assert created == sorted(created, reverse=True)
        await runtime.stop_pod(_POD.uid)
        await runtime.remove_pod(_POD.uid)
