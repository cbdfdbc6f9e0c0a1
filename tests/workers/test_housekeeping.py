"""Cleanup of undesired pods and state: when it happens, and when it must not."""

import pytest

from podstatus.kube.objects.pod import PodUID
from tests.support.node_in_memory import NodeInMemory, a_pod, asking
from tests.workers.unmanaged import start_behind_its_back


async def test_orphans_are_ended_and_removed(node: NodeInMemory) -> None:
    await start_behind_its_back(node, a_pod("p", "stop=never"))
    await node.passes(10)
    assert not await node.runtime.has("uid-p")
    assert node.calls("stop")[0] == "stop p a within 2"
    assert node.agent.lives.all() == ()
    assert node.recorder.events == []


@pytest.mark.parametrize("missing", ["api", "file"])
async def test_nothing_is_an_orphan_before_all_sources_have_delivered(missing: str) -> None:
    (heard,) = {"api", "file"} - {missing}
    quiet = NodeInMemory()
    quiet.delivers = [heard]
    async with quiet as node:
        await start_behind_its_back(node, a_pod("p"))
        await node.passes(300)
        assert await node.runtime.running("uid-p") == ["a"]
        assert node.agent.lives.could_have_running_containers(a_pod("q"))
        node.deliver(missing)
        await node.passes(10)
        assert not await node.runtime.has("uid-p")
        assert not node.agent.lives.could_have_running_containers(a_pod("q"))


async def test_nothing_is_an_orphan_before_the_runtime_was_listed(node: NodeInMemory) -> None:
    await node.stop()
    node.runtime.is_down = True
    await node.start()
    node.agent.statuses.set_pod_status(a_pod("p"), a_pod("p").status)
    await node.passes(60)
    assert len(node.agent.statuses.entries()) == 1
    node.runtime.is_down = False
    await node.passes(10)
    assert len(node.agent.statuses.entries()) == 0


async def test_an_orphan_whose_end_fails_is_tried_again(node: NodeInMemory) -> None:
    await start_behind_its_back(node, a_pod("p"))
    node.runtime.lies = True
    await node.passes(30)
    assert await node.runtime.running("uid-p") == ["a"]
    node.runtime.lies = False
    await node.passes(15)
    assert not await node.runtime.has("uid-p")


async def test_a_pod_that_has_left_without_a_word_is_ended(node: NodeInMemory) -> None:
    node.create(a_pod("p"))
    await node.passes(1)
    pod = node.agent.directory.pod_by_uid("uid-p")
    assert pod is not None
    node.agent.directory.remove_pod(pod)
    await node.passes(5)
    assert not await node.runtime.has("uid-p")


async def test_an_orphan_that_a_source_delivers_later_starts_again(node: NodeInMemory) -> None:
    pod = a_pod("p", "stop=3s", grace=10)
    await start_behind_its_back(node, pod)
    await node.passes(3.5)
    node.create(pod)
    await node.passes(15)
    assert node.looks("p") == "Running a:running+"
    assert node.calls().count("start p a-0") == 2


async def test_what_is_known_of_pods_that_are_gone_is_forgotten(node: NodeInMemory) -> None:
    node.create(a_pod("p", "run=1s, exit=1"))
    node.create(a_pod("q", "fail=ErrImageNeverPull"))
    await node.passes(30)
    node.force_delete("p")
    node.force_delete("q")
    await node.passes(10)
    agent = node.agent
    assert agent.lives.all() == ()
    assert agent.statuses.entries() == {}
    assert agent.executor.crash_loop_backoff.entries == {}
    assert agent.executor.start_failures(PodUID("uid-q")) == {}
    resized = asking(a_pod("p"), "3")
    assert agent.grants.allocated(resized) is resized, "nothing is allocated"
