"""Deletion of pods on a whole node in virtual time: the order of stop, status and removal."""

import pytest

from podstatus.workers.dependencies import WorkerPolicy
from tests.support.node_in_memory import NodeInMemory, a_pod


async def test_a_deleted_pod_is_stopped_reported_cleaned_up_and_removed(node: NodeInMemory) -> None:
    node.create(a_pod("p", "stop=2s, stop-exit=5"))
    await node.passes(1)
    node.api.before_delete = lambda _: node.runtime.calls.append("DELETE")
    node.delete("p", grace=20)
    await node.passes(1)
    assert node.looks("p") == "Running a:running+"
    assert node.events("p", "Killing") == ["Killing: Stopping container a"]
    await node.passes(5)
    assert node.shown_at("p")[2:] == [(3.0, "Failed a:exit-5"), (3.1, "gone")]
    assert node.calls()[2:] == [
        "stop p a within 20",
        "stop p sandbox",
        "remove p pod",
        "stop p sandbox",
        "DELETE",
    ]
    assert not await node.runtime.has("uid-p")
    assert node.agent.lives.all() == ()


async def test_records_stay_until_the_last_status_has_arrived(node: NodeInMemory) -> None:
    node.create(a_pod("p", "stop=2s, stop-exit=5"))
    await node.passes(1)
    node.delete("p", grace=20)
    await node.passes(1)
    node.server_is_away()
    await node.passes(300)
    assert await node.runtime.running("uid-p") == []
    assert await node.runtime.has("uid-p")
    assert node.looks("p") == "Running a:running+"
    node.server_is_back()
    await node.passes(60)
    assert node.shown("p")[2:] == ["Failed a:exit-5", "gone"]
    assert not await node.runtime.has("uid-p")


async def test_a_completed_pod_that_is_deleted_is_reclaimed_and_goes(node: NodeInMemory) -> None:
    node.create(a_pod("p", "run=2s", policy="Never"))
    await node.passes(10)
    node.delete("p")
    await node.passes(1)
    assert node.shown("p")[2:] == ["Succeeded a:exit-0", "gone"]
    assert not await node.runtime.has("uid-p")
    assert node.events("p", "Killing") == []


async def test_a_pod_that_was_taken_away_is_ended_and_forgotten(node: NodeInMemory) -> None:
    node.create(a_pod("p", "stop=2s"))
    await node.passes(1)
    node.force_delete("p")
    await node.passes(1)
    assert await node.runtime.running("uid-p") == ["a"]
    await node.passes(5)
    assert not await node.runtime.has("uid-p")
    assert node.agent.lives.all() == ()
    assert node.agent.statuses.entries() == {}


@pytest.mark.parametrize("how", ["delete", "force_delete"])
async def test_deletion_interrupts_a_start_that_hangs(node: NodeInMemory, how: str) -> None:
    node.create(a_pod("p", "start=never"))
    await node.passes(5)
    assert node.looks("p") == "Pending a:ContainerCreating"
    getattr(node, how)("p")
    await node.passes(2)
    assert node.looks("p") == "gone"
    assert not await node.runtime.has("uid-p")


async def test_a_start_that_is_slow_to_cancel_is_cancelled_once(node: NodeInMemory) -> None:
    node.create(a_pod("p", "start=never"))
    await node.passes(5)
    node.runtime.interruption = 3
    node.delete("p")
    await node.passes(1)
    node.force_delete("p")  # while the cancelled start is unwinding
    await node.passes(5)
    assert not await node.runtime.has("uid-p")
    assert node.agent.lives.all() == ()


async def test_a_deletion_with_less_grace_does_not_shorten_the_first(node: NodeInMemory) -> None:
    """As recorded from the kubelet: SURPRISES, what a node agent gets wrong, 6."""
    node.create(a_pod("p", "stop=never", grace=60))
    await node.passes(1)
    node.delete("p", grace=60)
    await node.passes(5)
    node.delete("p", grace=2)
    await node.passes(50)
    assert node.looks("p") == "Running a:running+"
    await node.passes(10)
    assert node.shown("p")[2:] == ["Failed a:exit-137", "gone"]


async def test_a_container_that_cannot_be_stopped_keeps_its_pod(node: NodeInMemory) -> None:
    node.create(a_pod("p", "stop=never, kill=never"))
    await node.passes(1)
    node.delete("p", grace=2)
    await node.passes(600)
    assert node.looks("p") == "Running a:running+"


async def test_terminated_pods_may_keep_what_they_left_until_they_are_gone() -> None:
    async with NodeInMemory(policy=WorkerPolicy(keep_terminated_pod_volumes=True)) as node:
        node.create(a_pod("p"))
        await node.passes(1)
        was_there = []
        node.api.before_delete = lambda _: was_there.append("remove p pod" in node.calls())
        node.delete("p")
        await node.passes(1)
        assert node.looks("p") == "gone"
        assert was_there == [False]
        await node.passes(5)
        assert not await node.runtime.has("uid-p")
        assert node.agent.lives.all() == ()
        calls = len(node.calls())
        await node.passes(60)
        assert len(node.calls()) == calls
