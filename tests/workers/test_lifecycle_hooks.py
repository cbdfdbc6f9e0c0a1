"""Containers with hooks, on a whole node in virtual time."""

from pathlib import Path

import pytest
from msgspec import structs

from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.containers import (
    Container,
    Lifecycle,
    LifecycleHandler,
    Probe,
    SleepAction,
)
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.workers.lifecycle.state_machine import Eviction
from tests.support.node_in_memory import NodeInMemory, a_pod
from tests.workers.pods import with_rule

EXEC = from_document({"exec": {"command": ["true"]}}, LifecycleHandler)
GET = from_document({"httpGet": {"path": "/bye", "port": 80}}, LifecycleHandler)
NAPS = LifecycleHandler(sleep=SleepAction(seconds=4))
ALWAYS_PROBED = Probe(period_seconds=1)


def hooked(
    pod: Pod,
    *,
    post_start: LifecycleHandler | None = None,
    pre_stop: LifecycleHandler | None = None,
    probe: str = "",
) -> Pod:
    """The pod with the same hooks and probe on each container and sidecar."""
    lifecycle = Lifecycle(post_start=post_start, pre_stop=pre_stop)

    def with_hooks(container: Container) -> Container:
        probes = {probe: ALWAYS_PROBED} if probe else {}
        return structs.replace(container, lifecycle=lifecycle, **probes)

    spec = structs.replace(
        pod.spec,
        containers=tuple(map(with_hooks, pod.spec.containers or ())),
        init_containers=tuple(map(with_hooks, pod.spec.init_containers or ())) or None,
    )
    return structs.replace(pod, spec=spec)


def stops(node: NodeInMemory) -> list[str]:
    """Containers that the runtime was asked to stop."""
    return [call for call in node.calls("stop") if not call.endswith(" sandbox")]


# postStart


@pytest.mark.parametrize(
    ("script", "handler"),
    [("post-start=4s", EXEC), ("post-start=4s", GET), ("", NAPS)],
    ids=["exec", "httpGet", "sleep"],
)
async def test_a_container_is_being_created_until_its_hook_has_ended(
    node: NodeInMemory, script: str, handler: LifecycleHandler
) -> None:
    node.create(hooked(a_pod("p", script), post_start=handler))
    await node.passes(6)
    assert node.shown_at("p") == [
        (0.0, "new"),
        (0.0, "Pending a:ContainerCreating"),
        (4.0, "Running a:running+"),
    ]
    assert [event.split(":")[0] for event in node.events("p")] == [
        "Pulled",
        "Created",
        "Started",
    ]
    assert node.event_seconds("p", "Started") == [0.0]


@pytest.mark.parametrize("probe", ["readiness_probe", "startup_probe", "liveness_probe"])
async def test_a_probe_shows_nothing_before_the_hook_ended(node: NodeInMemory, probe: str) -> None:
    script = "post-start=4s, ready=+, started=+, alive=-"
    pod = hooked(a_pod("p", script), post_start=EXEC, probe=probe)
    node.create(pod)
    await node.passes(3.9)
    assert node.shown("p") == ["new", "Pending a:ContainerCreating"]


async def test_the_next_container_waits_for_the_hook_of_the_one_before(node: NodeInMemory) -> None:
    node.create(hooked(a_pod("p", containers=("a", "b")), post_start=NAPS))
    await node.passes(3.9)
    assert node.calls("start") == ["start p sandbox", "start p a-0"]
    await node.passes(0.2)
    assert node.calls("start")[2:] == ["start p b-0"]


async def test_a_container_whose_hook_fails_is_stopped_and_tried_again(node: NodeInMemory) -> None:
    script = "post-start=2s, post-start-exit=6, stop-exit=3; post-start=1s"
    node.create(hooked(a_pod("p", script, grace=5), post_start=EXEC))
    await node.passes(20)
    assert node.shown_at("p")[1:] == [
        (0.0, "Pending a:ContainerCreating"),
        (2.0, "Running a:PostStartHookError"),
        (3.0, "Running a:running+(1)"),
    ]
    assert stops(node) == ["stop p a within 5"]
    assert node.events("p", "FailedPostStartHook", "Killing") == [
        "FailedPostStartHook: PostStartHook failed",
        "Killing: FailedPostStartHook",
    ]


async def test_a_hook_that_fails_ends_a_pod_that_does_not_restart(node: NodeInMemory) -> None:
    script = "post-start=2s, post-start-exit=6, stop-exit=3"
    node.create(hooked(a_pod("p", script, policy="Never"), post_start=EXEC))
    await node.passes(4)
    assert node.shown("p") == [
        "new",
        "Pending a:ContainerCreating",
        "Failed a:exit-3",
    ]


async def test_a_failed_post_start_hook_is_followed_by_pre_stop(node: NodeInMemory) -> None:
    pod = a_pod("p", "post-start-exit=6", grace=10, policy="Never")
    node.create(hooked(pod, post_start=EXEC, pre_stop=NAPS))
    await node.passes(5)
    assert stops(node)[0] == "stop p a within 6"
    assert node.event_seconds("p", "FailedPostStartHook") == [0.0]


async def test_a_deleted_pod_does_not_wait_for_a_hook_that_hangs(node: NodeInMemory) -> None:
    node.create(hooked(a_pod("p", "post-start=never"), post_start=EXEC))
    await node.passes(100)
    assert node.looks("p") == "Pending a:ContainerCreating"
    node.delete("p")
    await node.passes(1)
    assert node.looks("p") == "gone"
    assert node.events("p", "FailedPostStartHook") == []


async def test_a_hook_that_hangs_holds_up_no_other_pod_and_not_the_agent(tmp_path: Path) -> None:
    async with NodeInMemory(runtime_folder=tmp_path) as node:
        node.create(hooked(a_pod("p", "post-start=never"), post_start=EXEC))
        await node.passes(5)
        node.create(a_pod("q"))
        await node.passes(1)
        assert node.looks("q") == "Running a:running+"
        await node.restart()
        await node.passes(1)
        # As upstream: a container that ran before the agent started is admitted.
        assert node.looks("p") == "Running a:running+"
        assert stops(node) == []


# preStop


@pytest.mark.parametrize(
    ("script", "handler"),
    [("pre-stop=4s", EXEC), ("pre-stop=4s", GET), ("", NAPS)],
    ids=["exec", "httpGet", "sleep"],
)
async def test_a_hook_comes_before_the_stop_and_takes_from_the_grace(
    node: NodeInMemory, script: str, handler: LifecycleHandler
) -> None:
    node.create(hooked(a_pod("p", script), pre_stop=handler))
    await node.passes(1)
    node.delete("p", grace=20)
    await node.passes(3.9)
    assert stops(node) == []
    assert node.event_seconds("p", "Killing") == [1.0]
    assert node.looks("p") == "Running a:running+"
    await node.passes(0.2)
    assert stops(node) == ["stop p a within 16"]
    assert node.events("p", "FailedPreStopHook") == []


async def test_a_clock_that_is_set_ahead_takes_nothing_from_the_grace(node: NodeInMemory) -> None:
    node.create(hooked(a_pod("p", "pre-stop=4s"), pre_stop=EXEC))
    await node.passes(1)
    node.delete("p", grace=20)
    await node.passes(1)
    node.clock.step(3600)
    await node.passes(3.1)
    assert stops(node) == ["stop p a within 16"]


async def test_a_hook_that_hangs_is_cut_at_the_end_of_the_grace(node: NodeInMemory) -> None:
    node.create(hooked(a_pod("p", "pre-stop=never, stop=never"), pre_stop=EXEC))
    await node.passes(1)
    node.delete("p", grace=10)
    await node.passes(10.1)
    assert stops(node) == ["stop p a within 2"]
    assert node.event_seconds("p", "FailedPreStopHook") == [11.0]
    await node.passes(2)
    assert node.looks("p") == "gone"


async def test_a_hook_that_fails_does_not_prevent_the_stop(node: NodeInMemory) -> None:
    node.create(hooked(a_pod("p", "pre-stop-exit=6"), pre_stop=EXEC))
    await node.passes(1)
    node.delete("p", grace=20)
    await node.passes(1)
    assert node.looks("p") == "gone"
    assert node.events("p", "Killing", "FailedPreStopHook") == [
        "Killing: Stopping container a",
        "FailedPreStopHook: PreStopHook failed",
    ]


async def test_all_hooks_begin_at_once_and_sidecars_still_end_last(node: NodeInMemory) -> None:
    scripts = {"s": "pre-stop=3s", "a": "pre-stop=2s, stop=2s", "b": "stop=1s"}
    pod = a_pod("p", containers=("a", "b"), sidecars=("s",), script=scripts)
    node.create(hooked(pod, pre_stop=EXEC))
    await node.passes(1)
    node.delete("p", grace=20)
    await node.passes(10)
    assert stops(node) == [
        "stop p b within 20",
        "stop p a within 18",
        "stop p s within 16",
    ]
    assert node.event_seconds("p", "Killing") == [1.0, 1.0, 1.0]


async def test_a_restart_by_a_liveness_probe_runs_the_hook_too(node: NodeInMemory) -> None:
    pod = a_pod("p", "pre-stop=3s, alive=+5s-; alive=+", grace=20)
    node.create(hooked(pod, pre_stop=EXEC, probe="liveness_probe"))
    await node.passes(9)
    assert stops(node) == ["stop p a within 17"]
    assert node.looks("p") == "Running a:running+(1)"


async def test_a_deletion_during_a_stop_restarts_it_with_its_own_grace(node: NodeInMemory) -> None:
    pod = a_pod("p", "pre-stop=8s, alive=+2s-", grace=60)
    node.create(hooked(pod, pre_stop=EXEC, probe="liveness_probe"))
    await node.passes(4)
    node.delete("p", grace=12)
    await node.passes(8.1)
    assert stops(node) == ["stop p a within 4"]


async def test_a_pod_that_the_node_ends_gets_its_hook_too(node: NodeInMemory) -> None:
    node.create(hooked(a_pod("p"), pre_stop=NAPS))
    await node.passes(1)
    node.agent.workers.kill(PodUID("uid-p"), Eviction(reason="Evicted"), 10)
    await node.passes(5)
    assert stops(node) == ["stop p a within 6"]


async def test_an_orphaned_pod_has_no_hook(tmp_path: Path) -> None:
    async with NodeInMemory(runtime_folder=tmp_path) as node:
        node.create(hooked(a_pod("p"), pre_stop=NAPS))
        await node.passes(1)
        await node.stop()
        node.force_delete("p")
        await node.restart()
        await node.passes(3)
        assert not await node.runtime.has("uid-p")


async def test_without_grace_there_is_no_hook(node: NodeInMemory) -> None:
    pod = a_pod("p", "alive=+2s-; alive=+", grace=0)
    node.create(hooked(pod, pre_stop=NAPS, probe="liveness_probe"))
    await node.passes(3)
    assert stops(node) == ["stop p a within 2"]


async def test_a_restart_of_all_containers_does_not_wait_for_hooks(node: NodeInMemory) -> None:
    scripts = {"a": "run=2s, exit=42; run=forever"}
    pod = hooked(a_pod("p", containers=("a", "b"), script=scripts), pre_stop=NAPS)
    asks = with_rule("a", "RestartAllContainers", 42)
    containers = (asks, *(pod.spec.containers or ())[1:])
    node.create(structs.replace(pod, spec=structs.replace(pod.spec, containers=containers)))
    await node.passes(3)
    assert stops(node) == ["stop p b within 2"]
    assert node.looks("p") == "Running a:running+(1) b:running+(1)"


async def test_a_hook_interrupted_by_an_agent_restart_runs_again(
    tmp_path: Path,
) -> None:
    async with NodeInMemory(runtime_folder=tmp_path) as node:
        node.create(hooked(a_pod("p", "pre-stop=4s"), pre_stop=EXEC))
        await node.passes(1)
        node.delete("p", grace=20)
        await node.passes(3)
        await node.restart(after=2)
        await node.passes(3.9)
        assert stops(node) == []
        await node.passes(0.2)
        assert stops(node)[0].endswith("within 16")
        assert node.looks("p") == "gone"
