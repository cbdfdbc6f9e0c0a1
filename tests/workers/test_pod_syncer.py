"""Allocation, and the state after an interrupted step."""

from pathlib import Path

import pytest
from msgspec import structs

from podstatus.checkpoint.allocation_checkpoint import FileState
from podstatus.kube.objects.pod import PodUID
from podstatus.workers.lifecycle.state_machine import admitted
from podstatus.workers.pod_syncer import StillRunningError
from tests.support.node_in_memory import NodeInMemory, a_pod, asking

UID = PodUID("uid-p")


def granted(folder: Path) -> str | None:
    """The container's allocation in the checkpoint files of a folder."""
    state = FileState(folder)
    state.restore()
    found = state.allocated.container_resources(UID, "a")
    return None if found is None else (found.requests or {})["cpu"].canonical


def shown_cpu(node: NodeInMemory) -> str:
    pod = node.pod("p")
    assert pod is not None
    assert pod.status.container_statuses is not None
    allocated = pod.status.container_statuses[0].allocated_resources
    assert allocated is not None
    return allocated["cpu"].canonical


async def test_what_is_granted_is_on_the_disk_before_the_first_start(tmp_path: Path) -> None:
    async with NodeInMemory(state_folder=tmp_path) as node:
        seen: list[str | None] = []
        node.runtime.before_start = lambda *_: seen.append(granted(tmp_path))
        node.create(asking(a_pod("p"), "2"))
        await node.passes(1)
        assert seen == ["2"]


async def test_what_was_granted_counts_after_a_restart(tmp_path: Path) -> None:
    async with NodeInMemory(state_folder=tmp_path) as node:
        node.create(asking(a_pod("p"), "2"))
        await node.passes(1)
        await node.stop()
        shown = node.pod("p")
        assert shown is not None
        node.api.put(asking(shown, "9"))
        await node.start()
        await node.passes(5)
        assert granted(tmp_path) == "2"
        assert shown_cpu(node) == "2"


async def test_a_grant_that_cannot_be_written_starts_nothing(tmp_path: Path) -> None:
    async with NodeInMemory(state_folder=tmp_path / "state") as node:
        (tmp_path / "state").write_text("in the way")
        node.create(asking(a_pod("p"), "2"))
        await node.passes(5)
        assert node.calls("start") == []
        assert len(node.events("p", "FailedSync")) == 1
        (tmp_path / "state").unlink()
        await node.passes(10)
        assert node.looks("p") == "Running a:running+"


async def test_what_was_granted_is_forgotten_with_the_pod(tmp_path: Path) -> None:
    async with NodeInMemory(state_folder=tmp_path) as node:
        node.create(asking(a_pod("p"), "2"))
        await node.passes(1)
        node.delete("p")
        await node.passes(5)
        node.create(asking(a_pod("q"), "1"))  # a removal is stored with the next change
        await node.passes(1)
        assert granted(tmp_path) is None


async def test_a_pod_that_still_runs_after_its_end_is_said_to(node: NodeInMemory) -> None:
    node.create(a_pod("p"))
    await node.passes(1)
    node.runtime.lies = True
    with pytest.raises(StillRunningError, match="still runs simulated://"):
        await node.agent.steps.sync_terminating_pod(admitted(a_pod("p"), idle=False))


async def test_a_failed_start_is_forgotten_when_one_succeeds(node: NodeInMemory) -> None:
    # The script of a pod can change: the next attempt reads it again.
    node.create(a_pod("p", "fail=ErrImageNeverPull"))
    await node.passes(1)
    shown = node.pod("p")
    assert shown is not None
    metadata = structs.replace(shown.metadata, annotations={})
    node.api.put(structs.replace(shown, metadata=metadata))
    await node.passes(1)
    assert node.looks("p") == "Running a:running+"
    assert node.agent.executor.start_failures(UID) == {}


async def test_an_exit_whose_start_failed_shows_both(node: NodeInMemory) -> None:
    node.create(a_pod("p", "fail=StartError", policy="Never"))
    await node.passes(15)
    assert node.looks("p") == "Failed a:exit-128"
    assert node.events("p", "Failed")[0].startswith("Failed: Error: ")
