"""Exits are reported, whichever component crashes before the report."""

import pytest

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.pod_status import ContainerStatus
from podstatus.runtime.simulated.simulated_runtime import SimulatedRuntime
from podstatus.workers.lifecycle.state_machine import Eviction, PodLifecycle, PodWorkerState
from tests.support.node_in_memory import NodeInMemory, a_pod
from tests.support.status_fleet import MemoryOutbox

MANY = [f"p{number}" for number in range(12)]
"""More than have to fail before the API server counts as away."""


def container_of(node: NodeInMemory, name: str) -> ContainerStatus:
    pod = node.pod(name)
    assert pod is not None
    (found,) = pod.status.container_statuses or ()
    return found


async def forget_exits(node: NodeInMemory, uid: str) -> None:
    """The runtime loses its records of exited containers."""
    (pod,) = await node.runtime.list_pods(PodUID(uid))
    for attempt in pod.facts.containers:
        await SimulatedRuntime.remove_container(node.runtime, PodUID(uid), attempt.id)


async def test_why_the_node_ended_pods_during_an_outage_survives_the_agent() -> None:
    outbox = MemoryOutbox()
    async with NodeInMemory(outbox=outbox) as node:
        for name in MANY:
            node.create(a_pod(name, "stop=1s, stop-exit=3"))
        await node.passes(5)
        node.server_is_away()
        for name in MANY:
            node.agent.statuses.set_container_readiness(
                f"uid-{name}", container_of(node, name).container_id, ready=False
            )
        await node.passes(60)
        for name in MANY:
            node.agent.workers.kill(PodUID(f"uid-{name}"), Eviction(reason="Terminated"))
        await node.passes(5)
        assert {kept.finished for kept in outbox.kept.values()} == {True}
        assert len(outbox.kept) == len(MANY)
        await node.restart(after=60)
        node.server_is_back()
        await node.passes(60)
        assert {node.looks(name) for name in MANY} == {"Failed/Terminated a:exit-3"}
        assert outbox.kept == {}


async def test_an_exit_that_was_seen_survives_agent_and_runtime() -> None:
    outbox = MemoryOutbox()
    async with NodeInMemory(outbox=outbox) as node:
        node.create(a_pod("p", "run=20s, exit=3"))
        await node.passes(5)
        node.server_is_away()
        await node.passes(70)
        (kept,) = outbox.kept.values()
        assert not kept.finished
        (known,) = kept.status.container_statuses or ()
        assert known.restart_count > 0
        await node.stop()
        await forget_exits(node, "uid-p")
        await node.start()
        node.server_is_back()
        await node.passes(5)
        shown = container_of(node, "p")
        assert shown.last_state.terminated is not None
        assert shown.last_state.terminated.exit_code == 3
        assert shown.restart_count >= known.restart_count
        assert outbox.kept == {}


async def test_what_is_remembered_of_a_pod_that_is_gone_is_forgotten() -> None:
    outbox = MemoryOutbox()
    async with NodeInMemory(outbox=outbox) as node:
        node.create(a_pod("p", "run=20s, exit=3"))
        await node.passes(5)
        node.server_is_away()
        await node.passes(70)
        assert len(outbox.kept) == 1
        await node.stop()
        node.api.is_away = False
        node.force_delete("p")
        await node.start()
        await node.passes(30)
        assert outbox.kept == {}
        assert not await node.runtime.has("uid-p")


def delete_at(node: NodeInMemory, stage: PodWorkerState) -> None:
    """Deletes the pod at exactly this moment."""
    put, deleted = node.agent.lives.put, set[str]()

    def put_and_delete(lifecycle: PodLifecycle) -> None:
        put(lifecycle)
        if lifecycle.state is stage and lifecycle.name not in deleted:
            deleted.add(lifecycle.name)
            node.delete(lifecycle.name)
            pod = node.pod(lifecycle.name)
            assert pod is not None
            node.agent.mux.update("api", pod)

    node.agent.lives.put = put_and_delete  # type: ignore[method-assign]


def stop_slowly(node: NodeInMemory) -> None:
    """Leaves time to send the status before all containers have exited."""
    stop_pod = node.runtime.stop_pod

    async def stop(uid: PodUID) -> None:
        await node.clock.wait(2)
        await stop_pod(uid)

    node.runtime.stop_pod = stop  # type: ignore[method-assign]


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("stage", [PodWorkerState.TERMINATING, PodWorkerState.TERMINATED])
async def test_records_stay_until_the_terminal_phase_has_arrived(
    node: NodeInMemory, stage: PodWorkerState, restarted: bool
) -> None:
    """Deleted at any moment of its termination, also when the phase was just held back."""
    shown: list[str] = []
    node.runtime.before_remove = lambda _: shown.append(node.looks("p"))
    stop_slowly(node)
    node.create(a_pod("p", "run=5s", policy="Never"))
    await node.passes(4)
    if restarted:
        node.server_is_away()
        await node.passes(30)
        await node.restart()
    delete_at(node, stage)
    if restarted:
        node.server_is_back()
    await node.passes(30)
    assert node.shown("p")[-2:] == ["Succeeded a:exit-0", "gone"]
    assert shown == ["Succeeded a:exit-0"]


async def test_a_last_status_is_in_the_outbox_when_the_records_go_before_it() -> None:
    """Deleted right after it was finalized: cleaned up before its phase may be sent."""
    outbox = MemoryOutbox()
    async with NodeInMemory(outbox=outbox) as node:
        kept: list[str] = []
        node.runtime.before_remove = lambda _: kept.extend(
            found.status.phase for found in outbox.kept.values()
        )
        node.create(a_pod("p", "run=5s", policy="Never"))
        await node.passes(4)
        delete_at(node, PodWorkerState.FINISHED)
        await node.passes(30)
        assert node.shown("p")[-2:] == ["Succeeded a:exit-0", "gone"]
        assert kept == ["Succeeded"]
        assert outbox.kept == {}
