"""Changed static pods and agent restarts: which containers keep running, and which restart."""

from pathlib import Path

import pytest

from podstatus.checkpoint.allocation_checkpoint import MemoryState
from podstatus.checkpoint.errors import CheckpointWriteError
from tests.support.node_in_memory import NodeInMemory, a_pod
from tests.workers.unmanaged import a_static_pod

# Static pods


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
@pytest.mark.parametrize("away", [0.1, 1, 2.9])
async def test_a_static_pod_that_comes_back_starts_again_after_its_end(
    node: NodeInMemory, away: float, policy: str
) -> None:
    pod = a_static_pod("stop=3s", policy=policy)
    node.write_manifests(pod)
    await node.passes(1)
    node.write_manifests()
    await node.passes(away)
    node.write_manifests(pod)
    await node.passes(0)
    assert node.calls("start") == ["start s sandbox", "start s a-0"]
    await node.passes(5)
    assert node.calls("start", "remove") == [
        "start s sandbox",
        "start s a-0",
        "remove s pod",
        "start s sandbox",
        "start s a-0",
    ]
    status = node.agent.statuses.pod_status("uid-s")
    assert status is not None
    assert status.phase == "Running"


async def test_a_static_pod_comes_back_though_its_allocation_cannot_be_forgotten(
    node: NodeInMemory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_: object, uid: str) -> None:
        raise CheckpointWriteError(Path(uid), "no space left on device")

    monkeypatch.setattr(MemoryState, "remove_pod", fail)
    pod = a_static_pod("stop=3s")
    node.write_manifests(pod)
    await node.passes(1)
    node.write_manifests()
    await node.passes(1)
    node.write_manifests(pod)
    await node.passes(5)
    assert await node.runtime.running("uid-s") == ["a"]


async def test_a_changed_manifest_waits_for_the_end_of_the_old_one(node: NodeInMemory) -> None:
    node.write_manifests(a_static_pod("stop=3s", uid="old"))
    await node.passes(1)
    node.write_manifests(a_static_pod(uid="new"))
    await node.passes(2)
    assert await node.runtime.running("old") == ["a"]
    assert not await node.runtime.has("new")
    await node.passes(1.1)
    assert not await node.runtime.has("old")
    assert await node.runtime.running("new") == ["a"]


async def test_a_manifest_removed_while_it_waits_never_starts(node: NodeInMemory) -> None:
    node.write_manifests(a_static_pod("stop=3s", uid="old"))
    await node.passes(1)
    node.write_manifests(a_static_pod(uid="new"))
    await node.passes(1)
    node.write_manifests()
    await node.passes(10)
    assert node.calls("start") == ["start s sandbox", "start s a-0"]
    assert node.agent.lives.all() == ()


# Agent restarts


async def test_running_pods_are_taken_over(tmp_path: Path) -> None:
    async with NodeInMemory(runtime_folder=tmp_path) as node:
        node.create(a_pod("p"))
        await node.passes(5)
        await node.restart(after=20)
        await node.passes(60)
        assert node.shown("p") == ["new", "Running a:running+"]
        assert node.calls() == []


async def test_completed_pods_are_not_started_again(tmp_path: Path) -> None:
    async with NodeInMemory(runtime_folder=tmp_path) as node:
        node.create(a_pod("p", "run=2s", policy="Never"))
        await node.passes(5)
        await node.restart(after=20)
        await node.passes(60)
        assert node.looks("p") == "Succeeded a:exit-0"
        assert node.calls("start") == []


async def test_what_ended_meanwhile_is_shown_with_its_exit(tmp_path: Path) -> None:
    async with NodeInMemory(runtime_folder=tmp_path) as node:
        node.create(a_pod("p", "run=5s, exit=3", policy="Never"))
        node.create(a_pod("q", "run=5s, exit=3"))
        await node.passes(1)
        await node.restart(after=20)
        await node.passes(2)
        assert node.looks("p") == "Failed a:exit-3"
        assert node.looks("q") == "Running a:running+(1)"


async def test_a_pod_deleted_meanwhile_ends(tmp_path: Path) -> None:
    async with NodeInMemory(runtime_folder=tmp_path) as node:
        node.create(a_pod("p"))
        node.create(a_pod("q"))
        await node.passes(1)
        await node.stop()
        node.delete("p")
        node.force_delete("q")
        await node.restart()
        await node.passes(5)
        assert node.looks("p") == "gone"
        assert not await node.runtime.has("uid-p")
        assert not await node.runtime.has("uid-q")


async def test_the_agent_stops_in_the_middle_of_a_deletion(tmp_path: Path) -> None:
    async with NodeInMemory(runtime_folder=tmp_path) as node:
        node.create(a_pod("p", "stop=10s, stop-exit=5"))
        await node.passes(1)
        node.delete("p")
        await node.passes(2)
        await node.restart(after=1)
        await node.passes(12)
        assert node.shown("p")[2:] == ["Failed a:exit-5", "gone"]


async def test_what_runs_of_a_pod_that_is_said_to_have_ended_is_ended(node: NodeInMemory) -> None:
    node.create(a_pod("p", "stop=2s"))
    await node.passes(1)
    await node.stop()
    node.api.patch("ns", "p", {"status": {"phase": "Failed", "reason": "Meddling"}})
    await node.start()
    await node.passes(5)
    assert await node.runtime.running("uid-p") == []
    assert node.calls("start") == ["start p sandbox", "start p a-0"]
    assert node.looks("p").startswith("Failed")
