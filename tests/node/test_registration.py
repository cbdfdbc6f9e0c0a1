"""Registration of the Node."""

import asyncio
from itertools import pairwise

import pytest
from msgspec import structs

from podstatus.kube.objects.meta import ObjectMeta
from podstatus.kube.objects.node import Node, NodeSpec, Taint
from tests.node.scene import MACHINE, SETTINGS, NodeScene

TAINT = Taint(key="podstatus.dev/process", effect="NoExecute")
TAINTED = structs.replace(SETTINGS, taints=(TAINT,))


def bare_node() -> Node:
    return Node(metadata=ObjectMeta(name="node-c"), spec=NodeSpec())


async def test_a_node_that_is_not_there_is_created_with_its_status() -> None:
    scene = NodeScene(TAINTED)
    assert await scene.status.sync_once()
    assert scene.node.spec.taints == (TAINT,)
    assert (scene.node.status.capacity or {})["cpu"] == "2"
    assert scene.condition("Ready").status == "True"
    assert scene.own_node.current() == scene.node
    assert scene.events.reasons() == [
        "NodeHasSufficientMemory",
        "NodeHasNoDiskPressure",
        "NodeHasSufficientPID",
    ]


async def test_a_node_that_is_there_is_taken_over_with_its_taints() -> None:
    scene = NodeScene(TAINTED)
    scene.server.put_node(bare_node())
    assert await scene.status.sync_once()
    assert scene.node.spec.taints is None
    assert (scene.node.metadata.labels or {})["kubernetes.io/hostname"] == "node-c"
    assert scene.condition("Ready").status == "True"


async def test_a_node_that_is_as_it_should_be_is_not_written_to(scene: NodeScene) -> None:
    await scene.status.sync_once()
    scene.own_node.forget()
    scene.server.calls.clear()
    await scene.status.sync_once()
    assert scene.verbs() == ["create_node", "get_node"]


async def test_who_may_not_create_nodes_uses_the_one_that_is_there(scene: NodeScene) -> None:
    scene.server.put_node(bare_node())
    scene.server.fail("create_node", 403)
    assert await scene.status.sync_once()
    assert scene.own_node.uid


async def test_a_denied_creation_without_an_existing_node_raises_the_denial(
    scene: NodeScene,
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene.server.fail("create_node", 403)
    syncing = asyncio.create_task(scene.status.sync_once())
    await scene.clock.advance(0.01)
    assert [it.getMessage() for it in caplog.records] == [
        "registering the node failed, will retry: error=create_node: HTTP 403"
    ]
    await scene.clock.advance(1)
    assert await syncing


@pytest.mark.parametrize("code", [401, 403, 422, 429, 500, 503])
async def test_registration_is_retried_with_growing_waits(scene: NodeScene, code: int) -> None:
    scene.server.fail("create_node", *[code] * 9)
    times: list[float] = []
    start = scene.clock.now()
    syncing = asyncio.create_task(scene.status.sync_once())
    while not syncing.done():
        await scene.clock.advance(0.05)
        created = scene.verbs("create_node")
        times += [(scene.clock.now() - start) / 1e9] * len(created)
    waits = [after - before for before, after in pairwise(times)]
    assert len(waits) == 9
    assert waits[0] <= 0.2
    assert all(after > before - 0.06 for before, after in pairwise(waits))
    assert 6 < waits[-1] <= 7.05


async def test_a_call_that_hangs_is_given_up(scene: NodeScene) -> None:
    scene.server.hang()
    syncing = asyncio.create_task(scene.status.sync_once())
    await scene.clock.advance(9)
    scene.server.hang(hanging=False)
    assert not scene.server.nodes
    await scene.clock.advance(1.5)
    assert await syncing
    assert scene.verbs("create_node") == ["create_node"] * 2


async def test_a_node_is_not_registered_before_it_is_known_what_it_has(scene: NodeScene) -> None:
    scene.machine = None
    syncing = asyncio.create_task(scene.status.sync_once())
    await scene.clock.advance(1)
    assert scene.server.calls == []
    scene.machine = MACHINE
    await scene.clock.advance(10)
    assert await syncing


async def test_a_node_that_others_register_is_waited_for() -> None:
    scene = NodeScene(structs.replace(SETTINGS, register_node=False))
    assert not await scene.status.sync_once()
    assert set(scene.verbs()) == {"get_node"}
    scene.server.put_node(bare_node())
    assert await scene.status.sync_once()
    assert scene.condition("Ready").status == "True"
