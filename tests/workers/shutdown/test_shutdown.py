"""A node that shuts down, or is drained, in virtual time."""

import asyncio
from typing import Any

import pytest
from msgspec import structs

from podstatus.base.clock import Clock
from podstatus.kube.objects.pod import CONFIG_MIRROR, CONFIG_SOURCE, Pod
from podstatus.kube.objects.pod_status import PodCondition
from podstatus.workers.shutdown.manager import NOT_READY_MESSAGE, ShutdownManager
from podstatus.workers.shutdown.plan import default_periods
from podstatus.workers.shutdown.progress import DRAINED, DRAINING, OFF
from tests.support import node_in_memory
from tests.support.node_in_memory import NodeInMemory, with_deadline
from tests.support.pod_services import ignore

CRITICAL = 2_000_000_000
MESSAGE = "Pod was terminated in response to imminent node shutdown."


def a_pod(name: str, script: str = "", **more: Any) -> Pod:
    """A pod whose container exits with a non-zero code when it is stopped."""
    return node_in_memory.a_pod(name, ", ".join(filter(None, ("stop-exit=143", script))), **more)


def of_priority(pod: Pod, priority: int) -> Pod:
    return structs.replace(pod, spec=structs.replace(pod.spec, priority=priority))


def annotated(pod: Pod, **annotations: Any) -> Pod:
    assert pod.metadata.annotations is not None
    pod.metadata.annotations.update(annotations)
    return pod


def disruption(node: NodeInMemory, name: str) -> PodCondition | None:
    pod = node.pod(name)
    assert pod is not None
    found = [c for c in pod.status.conditions or () if c.type == "DisruptionTarget"]
    return found[0] if found else None


async def test_pods_end_as_the_kubelet_says_it(node: NodeInMemory) -> None:
    node.create(a_pod("p", "stop=2s"))
    await node.passes(1)
    node.agent.shutdown.begin()
    await node.passes(1)
    assert node.looks("p") == "Running a:running+", "reported when no container runs any more"
    assert disruption(node, "p") is None
    await node.passes(2)
    assert node.looks("p") == "Failed/Terminated a:exit-143"
    pod, target = node.pod("p"), disruption(node, "p")
    assert pod is not None
    assert target is not None
    assert pod.status.message == MESSAGE
    assert (target.status, target.reason) == ("True", "TerminationByKubelet")
    assert target.message == MESSAGE
    assert target.last_transition_time
    assert node.events("p", "Killing") == ["Killing: Stopping container a"]


async def test_one_that_ends_well_has_succeeded_though_it_was_disrupted(node: NodeInMemory) -> None:
    node.create(node_in_memory.a_pod("p", "stop=2s, stop-exit=0"))
    await node.passes(1)
    node.agent.shutdown.begin()
    await node.passes(5)
    assert node.looks("p") == "Succeeded a:exit-0"
    target = disruption(node, "p")
    assert target is not None
    assert target.reason == "TerminationByKubelet"


async def test_a_stop_that_fails_at_first_says_the_same_in_the_end(node: NodeInMemory) -> None:
    node.create(a_pod("p"))
    await node.passes(1)
    node.runtime.lies = True
    node.agent.shutdown.begin()
    await node.passes(5)
    assert node.looks("p") == "Running a:running+"
    node.runtime.lies = False
    await node.passes(30)
    assert node.looks("p") == "Failed/Terminated a:exit-143"
    assert disruption(node, "p") is not None


async def test_critical_pods_end_after_all_others(node: NodeInMemory) -> None:
    node.create(of_priority(a_pod("dns", "stop=1s"), CRITICAL))
    node.create(a_pod("slow", "stop=6s"))
    node.create(a_pod("quick", "stop=1s"))
    await node.passes(1)
    node.agent.shutdown.begin()
    await node.passes(20)
    ends = {name: node.shown_at(name)[-1] for name in ("quick", "slow", "dns")}
    assert {looks for _, looks in ends.values()} == {"Failed/Terminated a:exit-143"}
    assert ends["quick"][0] == 2.0
    assert ends["slow"][0] == 7.0
    assert 8.0 <= ends["dns"][0] < 8.5


class BusyClock:
    """Waits five times too long, as on a busy machine."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self) -> int:
        return self._clock.now()

    def monotonic(self) -> int:
        return self._clock.monotonic()

    async def wait(self, seconds: float) -> None:
        await self._clock.wait(5 * seconds)


async def test_a_group_has_its_time_and_no_more_on_a_busy_machine(node: NodeInMemory) -> None:
    node.create(a_pod("never", "stop=never, kill=never"))
    await node.passes(1)
    shutdown = ShutdownManager(
        structs.replace(node.agent.shared, clock=BusyClock(node.clock)),
        node.agent.workers,
        default_periods(30, 10),
        record_event=ignore,
        on_change=ignore,
    )
    running = asyncio.create_task(shutdown.run())
    shutdown.begin()
    through = asyncio.create_task(shutdown.wait_done())
    await node.passes(19)
    assert not through.done()
    await node.passes(2)
    assert through.done(), "20 s are over"
    running.cancel()


async def test_a_clock_that_is_set_ahead_takes_no_time_from_a_group(node: NodeInMemory) -> None:
    jump = 3600
    node.create(a_pod("slow", "stop=6s"))
    node.create(of_priority(a_pod("dns", "stop=1s"), CRITICAL))
    await node.passes(1)
    node.agent.shutdown.begin()
    await node.passes(1)
    node.clock.step(jump)
    await node.passes(20)
    assert node.shown_at("slow")[-1][0] - jump == 7.0
    assert 8.0 <= node.shown_at("dns")[-1][0] - jump < 8.5


async def test_grace_is_what_a_pod_asks_for_and_its_group_has(node: NodeInMemory) -> None:
    node.create(a_pod("long", "stop=never, kill=100ms", grace=600))
    node.create(a_pod("short", "stop=never, kill=100ms", grace=3))
    node.create(of_priority(a_pod("dns", "stop=never, kill=100ms", grace=600), CRITICAL))
    await node.passes(1)
    node.agent.shutdown.begin()
    await node.passes(40)
    assert sorted(call for call in node.calls("stop") if "within" in call) == [
        "stop dns a within 10",
        "stop long a within 20",
        "stop short a within 3",
    ]
    assert node.looks("long") == "Failed/Terminated a:exit-137"


async def test_a_pod_that_exceeds_its_time_does_not_delay_other_groups(node: NodeInMemory) -> None:
    node.create(a_pod("stuck", "stop=never, kill=60s"))
    node.create(of_priority(a_pod("dns"), CRITICAL))
    await node.passes(1)
    node.agent.shutdown.begin()
    await node.passes(21)
    assert node.looks("dns") == "Failed/Terminated a:exit-143"
    assert node.agent.shutdown.progress().left == ("ns/stuck",)
    await node.passes(60)
    assert node.looks("stuck") == "Failed/Terminated a:exit-137"
    assert node.agent.shutdown.progress().state == DRAINED


async def test_what_has_ended_by_itself_keeps_its_phase_and_reason(node: NodeInMemory) -> None:
    node.create(a_pod("done", "run=2s", policy="Never"))
    node.create(a_pod("failed", "run=2s, exit=3", policy="Never"))
    node.create(with_deadline(a_pod("late"), 3))
    await node.passes(5)
    before = {name: node.looks(name) for name in ("done", "failed", "late")}
    node.agent.shutdown.begin()
    await node.passes(30)
    assert {name: node.looks(name) for name in before} == before
    assert [disruption(node, name) for name in before] == [None] * 3


async def test_what_ends_in_the_same_moment_has_completed(
    node: NodeInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.create(a_pod("done", "run=2s", policy="Never"))
    await node.passes(1)
    monkeypatch.setattr(node.agent.workers, "wake", lambda _: None)
    await node.passes(1.5)
    assert node.looks("done") == "Running a:running+", "not noticed yet"
    node.agent.shutdown.begin()
    await node.passes(5)
    assert node.looks("done") == "Succeeded a:exit-0"
    assert disruption(node, "done") is None


async def test_a_pod_of_which_nothing_runs_yet_ends_too(node: NodeInMemory) -> None:
    node.create(a_pod("waits", "fail=ErrImagePull"))
    node.create(a_pod("starts", "start=10m"))
    await node.passes(1)
    node.agent.shutdown.begin()
    await node.passes(3)
    for name in ("waits", "starts"):
        pod = node.pod(name)
        assert pod is not None
        assert (pod.status.phase, pod.status.reason) == ("Failed", "Terminated")
        assert disruption(node, name) is not None
    assert node.agent.shutdown.progress().state == DRAINED


async def test_one_that_is_being_deleted_is_waited_for(node: NodeInMemory) -> None:
    node.create(a_pod("p", "stop=5s"))
    node.create(of_priority(a_pod("dns"), CRITICAL))
    await node.passes(1)
    node.delete("p")
    await node.passes(1)
    node.agent.shutdown.begin()
    await node.passes(2)
    assert node.looks("dns") == "Running a:running+"
    await node.passes(10)
    assert node.looks("p") == "gone"
    assert node.looks("dns") == "Failed/Terminated a:exit-143"


async def test_new_pods_are_rejected_while_it_is_on(node: NodeInMemory) -> None:
    node.agent.shutdown.begin()
    node.create(a_pod("new"))
    await node.passes(1)
    pod = node.pod("new")
    assert pod is not None
    assert (pod.status.phase, pod.status.reason) == ("Failed", "NodeShutdown")
    assert pod.status.message == (
        "Pod was rejected: Pod was rejected as the node is shutting down."
    )
    assert node.events("new") == ["NodeShutdown: Pod was rejected as the node is shutting down."]
    node.agent.shutdown.cancel()
    node.create(a_pod("newer"))
    await node.passes(1)
    assert node.looks("newer") == "Running a:running+"
    assert node.looks("new").startswith("Failed/NodeShutdown")


async def test_a_running_pod_that_is_delivered_late_is_not_rejected(node: NodeInMemory) -> None:
    node.create(a_pod("old", "stop=1s"))
    await node.passes(1)
    node.server_is_away()
    await node.restart()
    node.agent.shutdown.begin()
    await node.passes(3)
    node.server_is_back()
    await node.passes(5)
    assert node.looks("old") == "Failed/Terminated a:exit-143"


async def test_a_static_pod_ends_and_comes_back_with_the_next_agent(node: NodeInMemory) -> None:
    static = annotated(a_pod("s"), **{CONFIG_SOURCE: "file"})
    mirror = annotated(a_pod("s", uid="mirror"), **{CONFIG_SOURCE: "api", CONFIG_MIRROR: "h"})
    node.write_manifests(static)
    node.create(mirror)
    await node.passes(2)
    assert node.looks("s") == "Running a:running+"
    node.agent.shutdown.begin()
    await node.passes(3)
    assert node.looks("s") == "Failed/Terminated a:exit-143"
    await node.passes(60)
    assert await node.runtime.running(static.uid) == []
    await node.restart()
    await node.passes(30)
    assert node.looks("s").startswith("Running a:running+")


async def test_a_node_that_shuts_down_is_not_ready_and_reports_progress(node: NodeInMemory) -> None:
    shutdown = node.agent.shutdown
    node.create(a_pod("p", "stop=5s"))
    await node.passes(1)
    assert (shutdown.problem(), shutdown.progress().state) == (None, OFF)
    shutdown.begin()
    shutdown.begin()
    await node.passes(1)
    progress = shutdown.progress()
    assert shutdown.problem() == NOT_READY_MESSAGE
    assert (progress.state, progress.left) == (DRAINING, ("ns/p",))
    assert (progress.ending, progress.priority, progress.seconds) == (1, 0, 20)
    await node.passes(10)
    assert shutdown.progress().state == DRAINED
    shutdown.cancel()
    shutdown.cancel()
    assert (shutdown.problem(), shutdown.progress().state) == (None, OFF)
    assert node.agent.node_events == [
        "NodeShutdown: Shutdown manager detected shutdown event",
        "NodeShutdown: Shutdown manager detected shutdown cancellation",
    ]


async def test_one_that_is_cancelled_tells_no_more_pods_to_end(node: NodeInMemory) -> None:
    node.create(a_pod("p", "stop=5s"))
    node.create(of_priority(a_pod("dns"), CRITICAL))
    await node.passes(1)
    node.agent.shutdown.begin()
    await node.passes(2)
    node.agent.shutdown.cancel()
    after = node.agent.shutdown.progress()
    assert (after.state, after.left, after.ending) == (OFF, ("ns/dns",), 1)
    await node.passes(30)
    assert node.looks("p") == "Failed/Terminated a:exit-143", "it was reported before"
    assert node.looks("dns") == "Running a:running+"


async def test_a_second_shutdown_terminates_pods_that_came_in_between(node: NodeInMemory) -> None:
    shutdown = node.agent.shutdown
    node.create(a_pod("p", "stop=5s"))
    await node.passes(1)
    shutdown.begin()
    await node.passes(1)
    shutdown.cancel()
    node.create(a_pod("q", "stop=3s"))
    await node.passes(0)
    shutdown.begin()
    through = asyncio.create_task(shutdown.wait_done())
    await node.passes(4)
    assert node.looks("p") == "Failed/Terminated a:exit-143"
    assert not through.done()
    await node.passes(6)
    assert node.looks("q") == "Failed/Terminated a:exit-143"
    assert through.done()


async def test_an_agent_that_ends_while_it_drains_leaves_the_others(node: NodeInMemory) -> None:
    node.create(a_pod("quick"))
    node.create(a_pod("slow", "stop=10s"))
    node.create(of_priority(a_pod("dns"), CRITICAL))
    await node.passes(1)
    node.agent.shutdown.begin()
    await node.passes(2)
    await node.restart()
    await node.passes(60)
    assert node.looks("quick") == "Failed/Terminated a:exit-143"
    assert node.looks("dns") == "Running a:running+"
    assert not node.agent.shutdown.is_active


async def test_it_comes_to_its_end_without_an_api_server(node: NodeInMemory) -> None:
    node.create(a_pod("p"))
    await node.passes(1)
    node.server_is_away()
    node.agent.shutdown.begin()
    await node.passes(3)
    assert node.agent.shutdown.progress().state == DRAINED
    assert node.looks("p") == "Running a:running+"
    node.server_is_back()
    await node.passes(30)
    assert node.looks("p") == "Failed/Terminated a:exit-143"


@pytest.mark.parametrize("script", ["stop=20s", "run=2s, exit=3; stop=20s"])
async def test_a_restart_of_the_agent_ends_a_termination(node: NodeInMemory, script: str) -> None:
    node.create(a_pod("p", script))
    await node.passes(5)
    running = node.looks("p")
    assert running.startswith("Running a:running+")
    node.agent.shutdown.begin()
    await node.passes(2)
    await node.restart(after=1)
    await node.passes(5)
    assert node.looks("p") == running
    assert disruption(node, "p") is None
