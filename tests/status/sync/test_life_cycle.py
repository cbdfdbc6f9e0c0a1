import asyncio
import logging
import threading

import pytest

from podstatus.kube.objects.pod import Pod
from podstatus.pods.pod_manager import PodManager
from podstatus.status.manager import StatusManager
from podstatus.testing.builders import make_pod, make_status
from podstatus.testing.clock import FakeClock, run_ready_tasks
from podstatus.testing.fakes import FakeDeletionSafety
from podstatus.testing.in_memory_pod_api import InMemoryPodApi
from tests.support.status_node import HangingApi, Node, in_loop

RUNNING = make_status("Running")
LONG = 10.0
"""Seconds: timeout for things that happen immediately."""


# Start and stop


async def test_stop_ends_run() -> None:
    node = Node()
    loop = asyncio.create_task(node.manager.run())
    await run_ready_tasks()
    assert not loop.done()
    node.manager.stop()
    await asyncio.wait_for(loop, LONG)


async def test_run_twice_at_once_is_refused() -> None:
    node = Node()
    async with in_loop(node):
        with pytest.raises(RuntimeError, match="already syncing"):
            await node.manager.run()
        with pytest.raises(RuntimeError, match="already syncing"):
            node.manager.start()


async def test_run_again_after_stop() -> None:
    pod = make_pod()
    node = Node(pod)
    for phase in ("Pending", "Running"):
        async with in_loop(node):
            node.manager.set_pod_status(pod, make_status(phase))
            await run_ready_tasks()
            assert node.verbs() == ["get", "patch"]
        node.api.calls.clear()


async def test_a_cancelled_run_can_be_run_again() -> None:
    node = Node()
    loop = asyncio.create_task(node.manager.run())
    await run_ready_tasks()
    loop.cancel()
    with pytest.raises(asyncio.CancelledError):
        await loop
    async with in_loop(node) as again:
        assert not again.done()


async def test_a_run_is_cancelled_at_once_even_while_a_call_hangs() -> None:
    pod = make_pod()
    node = Node(pod, api=HangingApi())
    node.manager.set_pod_status(pod, RUNNING)
    loop = asyncio.create_task(node.manager.run())
    await run_ready_tasks()
    loop.cancel()
    await run_ready_tasks()
    assert loop.cancelled()


async def test_stop_without_a_loop_is_harmless() -> None:
    node = Node()
    node.manager.stop()
    node.manager.stop()
    async with in_loop(node) as loop:
        assert not loop.done()


async def test_a_second_stop_while_the_loop_ends_does_not_end_the_next_loop() -> None:
    node = Node()
    loop = asyncio.create_task(node.manager.run())
    await run_ready_tasks()
    while not loop.done():
        node.manager.stop()
        await asyncio.sleep(0)
    async with in_loop(node) as again:
        assert not again.done()


async def test_run_counts_from_the_call_on_and_can_be_stopped_before_it_is_awaited() -> None:
    node = Node()
    run = node.manager.run()
    with pytest.raises(RuntimeError, match="already syncing"):
        node.manager.start()
    node.manager.stop()
    async with in_loop(node) as again:
        await asyncio.wait_for(run, LONG)
        await run_ready_tasks()
        assert not again.done()


async def test_a_change_just_before_stop_is_sent() -> None:
    pod = make_pod()
    node = Node(pod)
    async with in_loop(node) as loop:
        node.manager.set_pod_status(pod, RUNNING)
        node.manager.stop()
        await asyncio.wait_for(loop, LONG)
    assert node.stored(pod).status.phase == "Running"


@pytest.mark.parametrize("drain", [0, 7])
async def test_a_call_that_hangs_is_given_up_by_stop_and_made_again_by_the_next_loop(
    drain: float,
) -> None:
    pod, api = make_pod(), HangingApi()
    node = Node(pod, api=api)
    async with in_loop(node) as loop:
        node.manager.set_pod_status(pod, RUNNING)
        await run_ready_tasks()
        node.manager.stop(drain=drain)
        await node.clock.advance(drain)
        await asyncio.wait_for(loop, LONG)
    assert node.sent == {}
    api.answers.set()
    async with in_loop(node):
        assert node.verbs() == ["get", "patch"]
        node.manager.set_pod_status(pod, make_status("Failed"))
        await run_ready_tasks()
        assert node.verbs() == ["get", "patch"]


async def test_a_call_that_ends_in_time_is_waited_for_by_stop() -> None:
    pod, api = make_pod(), HangingApi()
    node = Node(pod, api=api)
    async with in_loop(node) as loop:
        node.manager.set_pod_status(pod, RUNNING)
        await run_ready_tasks()
        node.manager.stop(drain=LONG)
        await run_ready_tasks()
        assert not loop.done()
        with pytest.raises(RuntimeError, match="already syncing"):
            await node.manager.run()
        api.answers.set()
        await asyncio.wait_for(loop, LONG)
    assert node.sent == {pod.uid: 1}


async def test_a_batch_by_hand_is_refused_while_the_loop_runs() -> None:
    pod = make_pod()
    node = Node(pod)
    async with in_loop(node):
        for full in (False, True):
            with pytest.raises(RuntimeError, match="already syncing"):
                await node.manager.sync_batch(full=full)
        with pytest.raises(RuntimeError, match="sync loop is running"):
            node.manager.pop_changes()
    node.manager.set_pod_status(pod, RUNNING)
    assert await node.manager.sync_batch(full=False) == 1


async def test_two_batches_by_hand_at_once_are_refused_and_so_is_the_loop_beside_one() -> None:
    pod, api = make_pod(), HangingApi()
    node = Node(pod, api=api)
    node.manager.set_pod_status(pod, RUNNING)
    batch = asyncio.create_task(node.manager.sync_batch(full=False))
    await run_ready_tasks()
    node.manager.stop()  # stops the loop, not the batch
    with pytest.raises(RuntimeError, match="already syncing"):
        await node.manager.sync_batch(full=False)
    with pytest.raises(RuntimeError, match="already syncing"):
        await node.manager.run()
    api.answers.set()
    assert await batch == 1
    assert await node.manager.sync_batch(full=False) == 0


# Without a client


async def test_without_a_client_the_cache_is_kept_and_nothing_is_sent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "podstatus")

    pod, clock = make_pod(), FakeClock()
    manager = StatusManager(None, PodManager([pod]), FakeDeletionSafety(), clock=clock)
    loop = asyncio.create_task(manager.run())
    manager.set_pod_status(pod, RUNNING)
    await clock.advance(60)
    assert not loop.done()
    status = manager.pod_status(pod.uid)
    assert status is not None
    assert status.phase == "Running"
    assert manager.sent_versions() == {}
    manager.stop()
    await asyncio.wait_for(loop, LONG)
    assert [r.message for r in caplog.records] == ["no client, statuses are cached but not sent"]
    assert await manager.sync_batch(full=True) == 0


# In its own thread


class SignallingApi(InMemoryPodApi):
    """Signals each patch."""

    def __init__(self) -> None:
        super().__init__()
        self.patched = threading.Event()

    async def patch_pod_status(self, namespace: str, name: str, patch: bytes) -> Pod:
        pod = await super().patch_pod_status(namespace, name, patch)
        self.patched.set()
        return pod


def sync_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "podstatus-sync"]


def test_start_twice_is_refused_and_the_first_goes_on() -> None:
    pod, api = make_pod(), SignallingApi()
    node = Node(pod, api=api)
    node.manager.start()
    with pytest.raises(RuntimeError, match="already syncing"):
        node.manager.start()
    node.manager.set_pod_status(pod, RUNNING)
    assert api.patched.wait(LONG)
    node.manager.stop()


def test_stop_right_after_start_ends_the_thread() -> None:
    node = Node()
    for _ in range(20):
        node.manager.start()
        assert len(sync_threads()) == 1
        node.manager.stop()
        assert sync_threads() == []


def test_a_stopped_manager_can_be_started_again() -> None:
    pod, api = make_pod(), SignallingApi()
    node = Node(pod, api=api)
    for phase in ("Pending", "Running"):
        api.patched.clear()
        node.manager.start()
        node.manager.set_pod_status(pod, make_status(phase))
        assert api.patched.wait(LONG)
        node.manager.stop()
    assert node.stored(pod).status.phase == "Running"


def test_stop_comes_back_while_a_call_to_the_server_hangs() -> None:
    pod, api = make_pod(), HangingApi()
    node = Node(pod, api=api)
    node.manager.set_pod_status(pod, RUNNING)
    node.manager.start()
    assert api.asked.wait(LONG)
    stopper = threading.Thread(target=node.manager.stop, kwargs={"drain": 0}, daemon=True)
    stopper.start()
    stopper.join(LONG)
    assert not stopper.is_alive()
    assert sync_threads() == []


async def test_a_batch_by_hand_and_run_are_refused_from_start_on() -> None:
    node = Node()
    node.manager.start()
    with pytest.raises(RuntimeError, match="already syncing"):
        await node.manager.sync_batch(full=False)
    with pytest.raises(RuntimeError, match="already syncing"):
        await node.manager.run()
    node.manager.stop()


class BrokenClock(FakeClock):
    async def wait(self, seconds: float) -> None:
        raise OSError(f"cannot wait {seconds} s")


def test_a_thread_that_died_says_so_and_can_be_started_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    manager = StatusManager(
        InMemoryPodApi(), PodManager(), FakeDeletionSafety(), clock=BrokenClock()
    )
    for _ in range(2):
        manager.start()
        for thread in sync_threads():
            thread.join(LONG)
    assert [r.message for r in caplog.records] == [
        "sync loop failed; call start() to run it again"
    ] * 2
    assert "cannot wait 10.0 s" in caplog.text
    manager.stop()


def test_a_port_may_stop_the_loop_that_calls_it() -> None:
    pod = make_pod()

    class StoppingApi(InMemoryPodApi):
        async def get_pod(self, namespace: str, name: str) -> Pod:
            node.manager.stop()
            return await super().get_pod(namespace, name)

    node = Node(pod, api=StoppingApi())
    node.manager.set_pod_status(pod, RUNNING)
    node.manager.start()
    for thread in sync_threads():
        thread.join(LONG)
    assert sync_threads() == []
