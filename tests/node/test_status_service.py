"""The Node status in virtual time."""

import asyncio

import pytest
from msgspec import structs

from podstatus.base.service_heartbeats import Heartbeats
from podstatus.kube.objects.node import NodeCondition
from podstatus.node.node_cache import NodeWatch
from podstatus.node.ports import node_problems
from tests.node.scene import INFO, NodeScene

FOREIGN = {"type": "KernelDeadlock", "status": "False", "reason": "KernelHasNoDeadlock"}


async def test_a_status_that_does_not_change_is_sent_every_five_minutes(scene: NodeScene) -> None:
    async with scene.running():
        await scene.clock.advance(1)
        heard = scene.condition("Ready").last_heartbeat_time
        scene.verbs()
        await scene.clock.advance(290)
        assert scene.verbs("node") == []
        await scene.clock.advance(20)
        assert scene.verbs("node") == ["patch_node_status"]
        ready = scene.condition("Ready")
        assert ready.last_heartbeat_time > heard
        assert ready.last_transition_time == scene.condition("DiskPressure").last_transition_time


@pytest.mark.parametrize(("chance", "first"), [(0.0, 150), (0.9, 420)])
async def test_the_first_report_after_a_change_comes_by_chance_and_then_in_step(
    chance: float, first: int
) -> None:
    scene = NodeScene(chance=chance)
    async with scene.running():
        await scene.clock.advance(1)
        scene.verbs()
        for period in (first, 300):
            await scene.clock.advance(period - 20)
            assert scene.verbs("node") == []
            await scene.clock.advance(20)
            assert scene.verbs("node") == ["patch_node_status"]


async def test_a_change_is_sent_with_the_next_look(scene: NodeScene) -> None:
    async with scene.running():
        await scene.clock.advance(1)
        scene.events.reasons()
        scene.run_short_of_memory()
        await scene.clock.advance(10)
        assert scene.condition("MemoryPressure").status == "True"
        assert scene.events.reasons() == ["NodeHasInsufficientMemory"]
        scene.pressures = ()
        await scene.clock.advance(10)
        assert scene.condition("MemoryPressure").status == "False"
        assert scene.events.reasons() == ["NodeHasSufficientMemory"]


async def test_who_knows_better_is_heard_at_once(scene: NodeScene) -> None:
    async with scene.running():
        await scene.clock.advance(1)
        scene.problems = ("the runtime is down", "relist is not healthy")
        scene.status.request_sync()
        await scene.clock.advance(0.01)
        ready = scene.condition("Ready")
        assert (ready.status, ready.reason) == ("False", "KubeletNotReady")
        assert ready.message == "[the runtime is down, relist is not healthy]"


async def test_a_requested_sync_happens_at_once_before_the_first_ready(scene: NodeScene) -> None:
    scene.problems = ("not yet",)
    async with scene.running():
        await scene.clock.advance(1)
        scene.problems = ("never",)
        await scene.clock.advance(1)
        assert scene.condition("Ready").message == "not yet"
        scene.status.request_sync()
        await scene.clock.advance(0.01)
        assert scene.condition("Ready").message == "never"


async def test_a_stalled_service_makes_the_node_not_ready_and_is_named(scene: NodeScene) -> None:
    heartbeats = Heartbeats(scene.clock)
    heartbeats.register("relist", max_silent_seconds=30)
    async with scene.running():
        for _ in range(5):
            scene.problems = node_problems((), heartbeats)
            await scene.clock.advance(10)
        ready = scene.condition("Ready")
        assert ready.status == "False"
        assert ready.message.startswith("relist is not healthy: relist was last active 4")


async def test_the_first_ready_is_reported_at_once(scene: NodeScene) -> None:
    scene.problems = ("not yet",)
    async with scene.running():
        await scene.clock.advance(3)
        assert scene.condition("Ready").status == "False"
        scene.verbs()
        scene.problems = ()
        await scene.clock.advance(0.2)
        assert scene.condition("Ready").status == "True"
        assert scene.verbs("node") == ["patch_node_status"]
        assert "NodeReady" in scene.events.reasons()


async def test_a_node_that_takes_long_is_checked_as_often_as_others(scene: NodeScene) -> None:
    scene.problems = ("not yet",)
    async with scene.running():
        await scene.clock.advance(125)
        scene.problems = ()
        await scene.clock.advance(2)
        assert scene.condition("Ready").status == "False"
        await scene.clock.advance(10)
        assert scene.condition("Ready").status == "True"


async def test_a_failed_first_ready_is_retried_after_a_second(scene: NodeScene) -> None:
    scene.problems = ("not yet",)
    async with scene.running():
        await scene.clock.advance(1)
        scene.server.fail_all()
        scene.problems = ()
        scene.verbs()
        await scene.clock.advance(3)
        assert len(scene.verbs("node")) <= 4 * 5
        scene.server.fail_all(0)
        await scene.clock.advance(1.2)
        assert scene.condition("Ready").status == "True"


async def test_conditions_of_others_survive(scene: NodeScene) -> None:
    async with scene.running():
        await scene.clock.advance(1)
        scene.server.change_node("node-c", {"status": {"conditions": [FOREIGN]}})
        scene.run_short_of_memory()
        await scene.clock.advance(10)
        assert scene.condition("MemoryPressure").status == "True"
        assert scene.condition("KernelDeadlock").reason == "KernelHasNoDeadlock"


async def test_conditions_that_the_control_plane_changed_are_restored(scene: NodeScene) -> None:
    async with scene.running():
        await scene.clock.advance(1)
        unknown = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
        stored = scene.server.change_node("node-c", {"status": {"conditions": [unknown]}})
        scene.own_node.update(stored)
        scene.events.reasons()
        await scene.clock.advance(10)
        assert scene.condition("Ready").status == "True"
        assert scene.events.reasons() == ["NodeReady"]


async def test_a_failure_is_tried_again_from_what_the_server_has(scene: NodeScene) -> None:
    await scene.status.sync_once()
    scene.run_short_of_memory()
    scene.server.fail("patch_node_status", 500, 409)
    scene.verbs()
    assert await scene.status.sync_once()
    assert scene.verbs() == ["patch_node_status", *["get_node", "patch_node_status"] * 2]


async def test_after_five_tries_it_waits_for_the_next_time(scene: NodeScene) -> None:
    await scene.status.sync_once()
    scene.run_short_of_memory()
    scene.events.reasons()
    scene.server.fail("patch_node_status", *[500] * 5)
    assert not await scene.status.sync_once()
    assert scene.events.reasons() == []
    assert await scene.status.sync_once()
    assert scene.events.reasons() == ["NodeHasInsufficientMemory"]


async def test_a_node_that_was_deleted_is_registered_again(scene: NodeScene) -> None:
    async with scene.running():
        await scene.clock.advance(1)
        before = scene.node.metadata.uid
        del scene.server.nodes["node-c"]
        scene.run_short_of_memory()
        await scene.clock.advance(10)
        assert scene.node.metadata.uid != before
        assert scene.condition("MemoryPressure").status == "True"
        await scene.clock.advance(10.5)
        (owner,) = scene.server.leases["node-c"].metadata.owner_references or ()
        assert owner.uid == scene.node.metadata.uid


async def test_a_node_that_is_another_one_by_now_is_read_again(scene: NodeScene) -> None:
    await scene.status.sync_once()
    metadata = structs.replace(scene.node.metadata, uid="another")
    scene.server.put_node(
        structs.replace(scene.node, metadata=metadata, status=type(scene.node.status)())
    )
    scene.run_short_of_memory()
    assert await scene.status.sync_once()
    assert scene.condition("MemoryPressure").reason == "KubeletHasInsufficientMemory"
    assert scene.condition("DiskPressure").reason == "KubeletHasNoDiskPressure"
    assert scene.own_node.uid == "another"


async def test_it_says_that_it_starts_and_that_the_machine_did(scene: NodeScene) -> None:
    await scene.status.sync_once()
    again = NodeScene(api=scene.server, info=structs.replace(INFO, boot_id="boot-2"))
    async with again.running():
        await again.clock.advance(1)
    assert again.events.recorded == [
        ("Normal", "Starting", "Starting kubelet."),
        ("Warning", "Rebooted", "Node node-c has been rebooted, boot id: boot-2"),
    ]


async def test_a_cordon_has_one_event(scene: NodeScene) -> None:
    await scene.status.sync_once()
    scene.events.reasons()
    for unschedulable in (True, False):
        scene.own_node.update(
            scene.server.change_node("node-c", {"spec": {"unschedulable": unschedulable}})
        )
        await scene.status.sync_once()
        await scene.status.sync_once()
    assert scene.events.reasons() == ["NodeNotSchedulable", "NodeSchedulable"]


async def test_a_condition_says_what_it_said_before_an_outage(scene: NodeScene) -> None:
    async with scene.running():
        await scene.clock.advance(1)
        before: NodeCondition = scene.condition("Ready")
        scene.server.fail_all()
        await scene.clock.advance(600)
        scene.server.fail_all(0)
        await scene.clock.advance(11)
        after = scene.condition("Ready")
        assert after.last_heartbeat_time > before.last_heartbeat_time
        assert after.last_transition_time == before.last_transition_time


async def test_a_node_that_was_taken_for_dead_replies_at_once(scene: NodeScene) -> None:
    watch = NodeWatch(scene.own_node, scene.status.request_sync)
    async with scene.running():
        await scene.clock.advance(3)
        conditions = scene.node.status.conditions or ()
        dead = tuple(structs.replace(it, status="Unknown") for it in conditions)
        status = structs.replace(scene.node.status, conditions=dead)
        scene.server.put_node(structs.replace(scene.node, status=status))
        scene.verbs()
        watch.update(scene.node)
        await scene.clock.advance(0.01)
        assert {scene.condition(kind).status for kind in ("Ready", "PIDPressure")} == {
            *("True", "False"),
        }
        # The watch shows this reply, too, and other changes: none of them has a reply.
        for _ in range(3):
            watch.update(scene.node)
            await scene.clock.advance(0.01)
        assert len(scene.verbs("patch")) == 1


async def test_a_stop_is_told_by_a_condition_which_the_next_agent_removes(scene: NodeScene) -> None:
    async with scene.running():
        await scene.clock.advance(1)
        scene.server.change_node(scene.settings.name, {"status": {"conditions": [FOREIGN]}})
        await scene.clock.advance(20)
    before = scene.node.status.conditions or ()
    scene.verbs()
    assert await scene.status.report_stop("it was stopped")
    assert scene.verbs() == ["patch_node_status"]
    *others, stopped = scene.node.status.conditions or ()
    assert tuple(others) == before
    assert (stopped.type, stopped.status, stopped.message) == (
        "podstatus.dev/AgentStopped",
        "True",
        "it was stopped",
    )
    assert stopped.last_transition_time.unix_nanos() == scene.clock.now() // 10**9 * 10**9
    await scene.clock.advance(600)
    async with scene.running():
        await scene.clock.advance(1)
        assert {it.type for it in scene.node.status.conditions or ()} == {it.type for it in before}


async def test_a_stop_waits_one_second_for_the_server_and_asks_once(scene: NodeScene) -> None:
    async with scene.running():
        await scene.clock.advance(1)
    scene.verbs()
    scene.server.hang()
    telling = asyncio.create_task(scene.status.report_stop("it was stopped"))
    await scene.clock.advance(0.9)
    assert not telling.done()
    await scene.clock.advance(0.1)
    assert telling.result() is False
    scene.server.hang(hanging=False)
    scene.server.fail_all(503)
    assert await scene.status.report_stop("it was stopped") is False
    assert scene.verbs() == ["patch_node_status"] * 2


async def test_one_that_was_never_registered_has_nothing_to_tell(scene: NodeScene) -> None:
    assert await scene.status.report_stop("it was stopped") is False
    assert scene.verbs() == []
