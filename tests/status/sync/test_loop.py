import asyncio

import pytest

from podstatus.kube.objects.pod import Pod
from podstatus.pods.pod_manager import PodManager, UidTranslations
from podstatus.status.manager import StatusManager
from podstatus.status.policy import SyncPolicy
from podstatus.testing.builders import make_pod, make_status
from podstatus.testing.clock import FakeClock, run_ready_tasks
from podstatus.testing.fakes import FakeDeletionSafety
from podstatus.testing.in_memory_pod_api import InMemoryPodApi
from tests.support.status_node import HangingApi, Node, in_loop

RUNNING = make_status("Running")


def write_over(node: Node, pod: Pod) -> None:
    """Another client changes the pod's phase, and the pod manager sees it."""
    node.api.patch(pod.namespace, pod.name, {"status": {"phase": "Unknown"}})
    node.observe(pod)


async def test_a_changed_status_is_sent_at_once() -> None:
    pod = make_pod()
    node = Node(pod)
    async with in_loop(node):
        node.manager.set_pod_status(pod, RUNNING)
        await run_ready_tasks()
        assert node.verbs() == ["get", "patch"]


async def test_changes_before_the_loop_looks_are_one_batch() -> None:
    pod = make_pod()
    node = Node(pod)
    async with in_loop(node):
        for phase in ("Pending", "Running", "Failed"):
            node.manager.set_pod_status(pod, make_status(phase))
        await run_ready_tasks()
        assert node.verbs() == ["get", "patch"]
        assert node.stored(pod).status.phase == "Failed"


async def test_a_change_of_one_pod_reconciles_no_other() -> None:
    pods = one, other = make_pod("one"), make_pod("other")
    node = Node(*pods)
    async with in_loop(node):
        for pod in pods:
            node.manager.set_pod_status(pod, RUNNING)
        await run_ready_tasks()
        write_over(node, other)
        node.verbs()
        node.manager.set_pod_status(one, make_status("Failed"))
        await run_ready_tasks()
        assert node.verbs() == ["get", "patch"]
        assert node.stored(other).status.phase == "Unknown"


async def test_a_status_set_before_the_loop_runs_is_sent_when_it_does() -> None:
    pod = make_pod()
    node = Node(pod)
    node.manager.set_pod_status(pod, RUNNING)
    async with in_loop(node):
        assert node.verbs() == ["get", "patch"]


async def test_everything_is_reconciled_once_per_period() -> None:
    pod = make_pod()
    node = Node(pod)
    async with in_loop(node):
        node.manager.set_pod_status(pod, RUNNING)
        await run_ready_tasks()
        node.verbs()
        for _ in range(2):
            write_over(node, pod)
            await node.clock.advance(9.9)
            assert node.verbs() == []
            await node.clock.advance(0.1)
            assert node.verbs() == ["get", "patch"]
            node.observe(pod)


async def test_the_period_is_that_of_the_policy() -> None:
    pod = make_pod()
    node = Node(pod, policy=SyncPolicy(full_sync_period=3, parallel=None))
    node.api.fail("get", "default", "pod", code=503, times=100)
    async with in_loop(node):
        node.manager.set_pod_status(pod, RUNNING)
        await run_ready_tasks()
        await node.clock.advance(9)
        assert node.verbs() == ["get"] * 4


async def test_outage_is_survived_without_a_new_status() -> None:
    pod = make_pod()
    node = Node(pod)
    node.api.fail("get", "default", "pod", code=503, times=3)
    async with in_loop(node):
        node.manager.set_pod_status(pod, RUNNING)
        await run_ready_tasks()
        await node.clock.advance(30)
        assert node.verbs() == ["get", "get", "get", "get", "patch"]
        assert node.stored(pod).status.phase == "Running"


async def test_a_change_during_a_sync_is_sent_after_it() -> None:
    pod, api = make_pod(), HangingApi()
    node = Node(pod, api=api)
    async with in_loop(node):
        node.manager.set_pod_status(pod, RUNNING)
        await run_ready_tasks()
        node.manager.set_pod_status(pod, make_status("Failed"))
        api.answers.set()
        await run_ready_tasks()
        assert node.verbs() == ["get", "patch", "get", "patch"]
        assert node.sent == {pod.uid: 2}


async def test_ticks_during_a_sync_are_made_up_for_once() -> None:
    pod, api = make_pod(), HangingApi()
    node = Node(pod, api=api)
    async with in_loop(node):
        node.manager.set_pod_status(pod, RUNNING)
        await run_ready_tasks()
        await node.clock.advance(35)
        api.answers.set()
        await run_ready_tasks()
        # The pod manager still has the old status: one reconcile, without a patch.
        assert node.verbs() == ["get", "patch", "get"]


class FailingDirectory(PodManager):
    fails = False

    def uid_translations(self) -> UidTranslations:
        if self.fails:
            raise OSError("directory on fire")
        return super().uid_translations()


async def test_a_directory_that_raises_does_not_end_the_loop(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pod = make_pod()
    directory, api, clock = FailingDirectory([pod]), InMemoryPodApi(pod), FakeClock()
    policy = SyncPolicy.upstream()
    manager = StatusManager(api, directory, FakeDeletionSafety(), clock=clock, policy=policy)
    loop = asyncio.create_task(manager.run())
    directory.fails = True
    manager.set_pod_status(pod, RUNNING)
    await run_ready_tasks()
    assert api.calls == []
    directory.fails = False
    await clock.advance(10)
    assert [call.verb for call in api.calls] == ["get", "patch"]
    manager.stop()
    await loop
    assert [r.message for r in caplog.records] == ["sync failed, will retry"]
    assert "directory on fire" in caplog.text


def test_a_period_must_be_longer_than_nothing() -> None:
    for period in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="full_sync_period"):
            SyncPolicy(full_sync_period=period)
    assert SyncPolicy(full_sync_period=0.5).full_sync_period == 0.5


async def test_a_reconcile_that_is_asked_for_does_not_wait_for_the_period() -> None:
    pod = make_pod()
    node = Node(pod)
    async with in_loop(node):
        node.manager.set_pod_status(pod, RUNNING)
        await run_ready_tasks()
        write_over(node, pod)
        node.manager.reconcile()
        await run_ready_tasks()
        assert node.stored(pod).status.phase == "Running"


async def test_the_loop_gives_a_sign_of_life_once_per_period() -> None:
    clock, beats = FakeClock(), list[int]()
    manager = StatusManager(
        InMemoryPodApi(),
        PodManager(),
        FakeDeletionSafety(),
        clock=clock,
        heartbeat=lambda: beats.append(clock.now()),
    )
    run = asyncio.ensure_future(manager.run())
    await clock.advance(25)
    assert [round((at - beats[0]) / 1e9) for at in beats[-2:]] == [10, 20]
    manager.stop()
    await run


async def test_a_status_has_arrived_when_the_server_acknowledged_the_newest() -> None:
    pod = make_pod()
    node = Node(pod)
    assert node.manager.is_acknowledged(pod.uid)
    node.manager.set_pod_status(pod, RUNNING)
    assert not node.manager.is_acknowledged(pod.uid)
    async with in_loop(node):
        await run_ready_tasks()
        assert node.manager.is_acknowledged(pod.uid)
        node.manager.set_pod_status(pod, make_status("Failed"))
        assert not node.manager.is_acknowledged(pod.uid)
        await run_ready_tasks()
        assert node.manager.is_acknowledged(pod.uid)
