import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.runtime_facts import (
    ContainerFacts,
    ContainerRunState,
    PodFacts,
    SandboxFacts,
    SandboxState,
)
from podstatus.runtime.metrics import RuntimeMetrics
from podstatus.runtime.pleg import Pleg
from podstatus.runtime.port import RuntimeDownError, RuntimePod
from podstatus.runtime.simulated import SimulatedRuntime
from podstatus.testing.builders import make_pod
from podstatus.testing.clock import FakeClock, run_ready_tasks
from podstatus.testing.runtime_suite.scene import only_container
from tests.support.pod_services import ignore

A, B = PodUID("uid-a"), PodUID("uid-b")


def pod(uid: PodUID, *, ip: str = "", ready: bool = True, code: int | None = None) -> RuntimePod:
    state = SandboxState.READY if ready else SandboxState.NOT_READY
    run_state = ContainerRunState.RUNNING if code is None else ContainerRunState.EXITED
    facts = PodFacts(
        sandboxes=(SandboxFacts(state=state),),
        containers=(ContainerFacts(name="app", state=run_state, exit_code=code or 0),),
        ips=(ip,) if ip else (),
    )
    return RuntimePod(uid=uid, namespace="default", name=uid, facts=facts)


class ScriptedRuntime(SimulatedRuntime):
    """A runtime whose lists the test sets; it may be down or slow."""

    def __init__(self, clock: FakeClock, *pods: RuntimePod) -> None:
        super().__init__(clock)
        self.pods = {p.uid: p for p in pods}
        self.down: Exception | None = None
        self.gate: asyncio.Event | None = None
        self.hints: list[asyncio.Queue[PodUID | Exception | None]] = []

    def put(self, *pods: RuntimePod) -> None:
        self.pods.update({p.uid: p for p in pods})

    async def list_pods(self, uid: PodUID | None = None) -> Sequence[RuntimePod]:
        answer = [p for p in self.pods.values() if uid in (None, p.uid)]
        if uid is None and self.gate is not None:
            await self.gate.wait()
        if self.down is not None:
            raise self.down
        return answer

    def changes(self) -> AsyncIterator[PodUID]:
        queue: asyncio.Queue[PodUID | Exception | None] = asyncio.Queue()
        self.hints.append(queue)
        return self._changes(queue)

    async def _changes(
        self, queue: asyncio.Queue[PodUID | Exception | None]
    ) -> AsyncIterator[PodUID]:
        while (item := await queue.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item


class Scene:
    def __init__(self, *pods: RuntimePod) -> None:
        self.clock = FakeClock()
        self.runtime = ScriptedRuntime(self.clock, *pods)
        self.changed: list[PodUID] = []
        self.beats = 0
        self.metrics = RuntimeMetrics()
        self.view = Pleg(
            self.runtime,
            clock=self.clock,
            on_change=self.changed.append,
            heartbeat=self.beat,
            metrics=self.metrics,
            random=lambda: 0.0,
        )

    def beat(self) -> None:
        self.beats += 1

    def changed_pods(self) -> list[PodUID]:
        changed, self.changed[:] = list(self.changed), []
        return changed

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(self.view.run())
            await run_ready_tasks()
            yield
            task.cancel()


@pytest.fixture
def scene() -> Scene:
    return Scene(pod(A))


async def test_a_list_tells_of_new_changed_and_gone_pods_and_of_no_others() -> None:
    scene = Scene(pod(A), pod(B))
    await scene.view.relist_once()
    assert sorted(scene.changed_pods()) == [A, B]
    await scene.view.relist_once()
    assert scene.changed_pods() == []
    scene.runtime.put(pod(A, code=1))
    await scene.view.relist_once()
    assert scene.changed_pods() == [A]
    del scene.runtime.pods[B]
    await scene.view.relist_once()
    assert scene.changed_pods() == [B]
    assert list(scene.view.pods()) == [A]


async def test_equal_facts_are_no_change_and_the_same_objects_are_not_compared() -> None:
    class Incomparable(RuntimePod, frozen=True, kw_only=True):
        def __eq__(self, other: object) -> bool:
            raise AssertionError("compared")

        __hash__ = None  # type: ignore[assignment]

    scene = Scene(Incomparable(uid=B, namespace="", name="", facts=PodFacts()))
    await scene.view.relist_once()
    await scene.view.relist_once()
    assert scene.changed_pods() == [B]
    scene.runtime.pods = {A: pod(A)}
    await scene.view.relist_once()
    scene.changed_pods()
    listed = scene.view.find(A)
    scene.runtime.put(pod(A))
    await scene.view.relist_once()
    assert scene.changed_pods() == []
    assert scene.view.find(A) is listed


async def test_it_lists_once_a_period_and_beats(scene: Scene) -> None:
    before = scene.view.has_listed
    async with scene.running():
        assert (before, scene.view.has_listed) == (False, True)
        assert scene.changed_pods() == [A]
        await scene.clock.advance(4.5)
        assert (scene.metrics.relists.snapshot()[()].count, scene.beats) == (5, 5)


async def test_a_hint_is_followed_before_the_next_list(scene: Scene) -> None:
    async with scene.running():
        scene.changed_pods()
        scene.runtime.put(pod(A, code=3), pod(B))
        scene.runtime.hints[0].put_nowait(A)
        await run_ready_tasks()
        assert scene.changed_pods() == [A]
        assert scene.view.find(B) is None


@pytest.mark.parametrize("broken", [None, RuntimeDownError("no answer"), KeyError("a mistake")])
async def test_hints_that_break_off_are_asked_for_again(
    scene: Scene, broken: Exception | None
) -> None:
    async with scene.running():
        for failures, wait in enumerate((1.0, 2.0, 4.0), 1):
            scene.runtime.hints[-1].put_nowait(broken)
            await run_ready_tasks()
            assert len(scene.runtime.hints) == failures
            await scene.clock.advance(wait - 0.1)
            assert len(scene.runtime.hints) == failures
            await scene.clock.advance(0.2)
            assert len(scene.runtime.hints) == failures + 1
        scene.changed_pods()
        scene.runtime.put(pod(B))
        scene.runtime.hints[-1].put_nowait(B)
        await run_ready_tasks()
        assert scene.changed_pods() == [B]
        scene.runtime.hints[-1].put_nowait(broken)
        await scene.clock.advance(1.1)
        assert len(scene.runtime.hints) == 5, "the back-off is reset after a hint"


async def test_an_outage_is_survived_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        scene = Scene(pod(A))
        async with scene.running():
            scene.changed_pods()
            scene.runtime.down = RuntimeDownError("no answer at the socket")
            await scene.clock.advance(5)
            assert scene.view.find(A) is not None
            assert scene.changed_pods() == []
            scene.runtime.down = None
            await scene.clock.advance(1)
            assert scene.changed_pods() == []
    assert [record.getMessage() for record in caplog.records] == [
        "listing the pods of the runtime failed, will retry: error=no answer at the socket",
        "listing the pods of the runtime works again",
    ]


async def test_refresh_asks_about_one_pod_now_and_tells_of_what_it_finds(scene: Scene) -> None:
    assert await scene.view.refresh(A) == pod(A).facts
    assert scene.changed_pods() == [A]
    assert not scene.view.has_listed
    assert await scene.view.refresh(A) == pod(A).facts
    assert scene.changed_pods() == []
    assert await scene.view.refresh(B) == PodFacts()
    assert scene.changed_pods() == []
    scene.runtime.pods.clear()
    assert await scene.view.refresh(A) == PodFacts()
    assert scene.changed_pods() == [A]


async def test_refresh_raises_when_the_runtime_is_down(scene: Scene) -> None:
    scene.runtime.down = RuntimeDownError("no answer")
    with pytest.raises(RuntimeDownError, match="no answer"):
        await scene.view.refresh(A)


async def test_a_list_that_was_asked_for_earlier_does_not_replace_a_newer_answer() -> None:
    scene = Scene(pod(A), pod(B))
    await scene.view.relist_once()
    scene.runtime.gate = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(scene.view.relist_once())
        await run_ready_tasks()
        scene.changed_pods()
        scene.runtime.put(pod(A, code=3))
        await scene.view.refresh(A)
        del scene.runtime.pods[B]
        await scene.view.refresh(B)
        assert scene.changed_pods() == [A, B]
        scene.runtime.gate.set()
    assert scene.changed_pods() == []
    found = scene.view.find(A)
    assert found is not None
    assert found.facts.containers[0].exit_code == 3
    assert scene.view.find(B) is None
    await scene.view.relist_once()
    assert scene.changed_pods() == []


async def test_the_addresses_of_a_pod_that_has_ended_are_kept() -> None:
    scene = Scene(pod(A, ip="10.1.2.3"))
    await scene.view.relist_once()
    scene.runtime.put(pod(A, ready=False, code=0))
    assert (await scene.view.refresh(A)).ips == ("10.1.2.3",)
    scene.changed_pods()
    await scene.view.relist_once()
    assert scene.changed_pods() == []
    scene.runtime.put(pod(A, ready=True))
    assert (await scene.view.refresh(A)).ips == ()


async def test_the_map_of_pods_is_of_one_moment(scene: Scene) -> None:
    await scene.view.relist_once()
    before = scene.view.pods()
    scene.runtime.put(pod(B))
    await scene.view.relist_once()
    assert list(before) == [A]
    assert sorted(scene.view.pods()) == [A, B]


async def test_a_runtime_that_was_never_listed_is_a_problem_with_a_reason(scene: Scene) -> None:
    never = "PLEG is not healthy: pleg has yet to be successful"
    assert scene.view.unhealthy_reason() == never
    scene.runtime.down = RuntimeDownError("no answer at the socket")
    await scene.view.relist_once()
    assert scene.view.unhealthy_reason() == f"{never}: no answer at the socket"
    scene.runtime.down = None
    await scene.view.relist_once()
    assert scene.view.unhealthy_reason() is None


async def test_a_runtime_that_was_not_listed_for_three_minutes_is_a_problem(scene: Scene) -> None:
    await scene.view.relist_once()
    scene.runtime.down = RuntimeDownError("no answer")
    await scene.clock.advance(180)
    await scene.view.relist_once()
    assert scene.view.unhealthy_reason() is None
    await scene.clock.advance(1)
    assert scene.view.unhealthy_reason() == (
        "PLEG is not healthy: pleg was last seen active 3m1s ago; threshold is 3m0s"
    )
    await scene.clock.advance(3600)
    assert "1h3m1s ago" in str(scene.view.unhealthy_reason())
    scene.runtime.down = None
    await scene.view.relist_once()
    assert scene.view.unhealthy_reason() is None


async def test_a_clock_that_is_set_ahead_makes_no_runtime_a_problem(scene: Scene) -> None:
    await scene.view.relist_once()
    scene.clock.step(3600)
    assert scene.view.unhealthy_reason() is None
    assert scene.view.age_seconds == 0


async def test_a_clock_that_is_set_back_hides_no_runtime_that_is_down(scene: Scene) -> None:
    await scene.view.relist_once()
    scene.runtime.down = RuntimeDownError("no answer")
    scene.clock.step(-3600)
    await scene.clock.advance(181)
    await scene.view.relist_once()
    assert "3m1s ago" in str(scene.view.unhealthy_reason())


async def test_a_list_that_hangs_is_a_problem_too(scene: Scene) -> None:
    async with scene.running():
        scene.runtime.gate = asyncio.Event()
        await scene.clock.advance(182)
        assert "3m" in str(scene.view.unhealthy_reason())
        assert scene.beats == 2


async def test_a_hundred_idle_simulated_pods_are_not_compared() -> None:
    clock, changed = FakeClock(), list[PodUID]()
    runtime = SimulatedRuntime(clock)
    for number in range(110):
        made = make_pod(f"p{number}")
        await runtime.start_pod(made)
        await runtime.start_container(made, only_container(made), restart_count=0)
    view = Pleg(
        runtime,
        clock=clock,
        on_change=changed.append,
        heartbeat=ignore,
        metrics=RuntimeMetrics(),
    )
    await view.relist_once()
    assert len(changed) == 110
    before = await runtime.list_pods()
    await clock.advance(60)
    after = await runtime.list_pods()
    assert all(x is y for x, y in zip(before, after, strict=True))
