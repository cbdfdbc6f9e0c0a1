"""Resizes of running pods in virtual time: accepted, actuated, pending, and across restarts."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

import pytest
from msgspec import structs

from podstatus.base.clock import Clock
from podstatus.checkpoint.allocation_checkpoint import FileState
from podstatus.kube.objects.containers import Container, ContainerResizePolicy
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.scalars.quantity import Quantity
from podstatus.runtime.port import CannotResizeError, RuntimePod
from podstatus.workers.admission.resource_fit import RequestedResources
from podstatus.workers.resize.decision import ResizeDecision, ResizePending
from tests.support.node_in_memory import NodeInMemory, a_pod, asking
from tests.support.world_in_memory import TroubledRuntime

UID = PodUID("uid-p")
PENDING, IN_PROGRESS = "PodResizePending", "PodResizeInProgress"


class ResizingRuntime(TroubledRuntime):
    """Records every resize, rejects some, and may not report resources."""

    def __init__(self, clock: Clock, folder: Path | None = None) -> None:
        super().__init__(clock, folder)
        self.refusal = ""
        self.resized: list[str] = []
        """As in `p a=2`."""
        self.is_silent = False
        self.before_resize: Callable[[Pod], None] = lambda _: None

    async def resize_pod(self, pod: Pod, containers: Mapping[str, str]) -> None:
        self.before_resize(pod)
        if self.refusal:
            raise CannotResizeError(self.refusal)
        given = [f"{c.name}={cpu_of(c)}" for c in everything(pod) if c.name in containers]
        self.resized.append(" ".join([pod.name, *given]))
        await super().resize_pod(pod, containers)

    async def list_pods(self, uid: PodUID | None = None) -> Sequence[RuntimePod]:
        listed = await super().list_pods(uid)
        return [_without_resources(pod) for pod in listed] if self.is_silent else listed


def _without_resources(pod: RuntimePod) -> RuntimePod:
    containers = tuple(structs.replace(c, resources=None) for c in pod.facts.containers)
    facts = structs.replace(pod.facts, containers=containers, resources=None)
    return structs.replace(pod, facts=facts)


def everything(pod: Pod) -> tuple[Container, ...]:
    return (*(pod.spec.init_containers or ()), *(pod.spec.containers or ()))


def cpu_of(container: Container) -> str:
    return (container.resources.requests or {}).get("cpu", Quantity("0")).canonical


class ResizingNode(NodeInMemory):
    """A node with state on disk whose runtime resizes pods."""

    runtime: ResizingRuntime

    def __init__(self, folder: Path) -> None:
        super().__init__(state_folder=folder)
        self.runtime = ResizingRuntime(self.clock)


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[ResizingNode]:
    async with ResizingNode(tmp_path) as node:
        yield node


def restarting(pod: Pod) -> Pod:
    """The pod with a resize policy that restarts its containers for cpu."""
    policy = (ContainerResizePolicy(resource_name="cpu", restart_policy="RestartContainer"),)
    containers = tuple(structs.replace(c, resize_policy=policy) for c in pod.spec.containers or ())
    return structs.replace(pod, spec=structs.replace(pod.spec, containers=containers))


def with_priority(pod: Pod, priority: int) -> Pod:
    return structs.replace(pod, spec=structs.replace(pod.spec, priority=priority))


def stored(node: NodeInMemory, name: str = "p") -> Pod:
    pod = node.pod(name)
    assert pod is not None
    return pod


def resize(node: NodeInMemory, cpu: str, name: str = "p") -> None:
    """A user requests other resources."""
    pod = asking(stored(node, name), cpu)
    meta = structs.replace(pod.metadata, generation=pod.metadata.generation + 1)
    node.api.put(structs.replace(pod, metadata=meta))


def shown(node: NodeInMemory, name: str = "p") -> str:
    """Allocated and actuated cpu, as in `2/1`."""
    (status,) = stored(node, name).status.container_statuses or ()
    allocated = (status.allocated_resources or {})["cpu"].canonical
    assert status.resources is not None
    return f"{allocated}/{(status.resources.requests or {})['cpu'].canonical}"


def conditions(node: NodeInMemory, name: str = "p") -> dict[str, str]:
    """Reason and generation of the resize condition, as in `Deferred@2`."""
    found = stored(node, name).status.conditions or ()
    kinds = (PENDING, IN_PROGRESS)
    return {c.type: f"{c.reason}@{c.observed_generation}" for c in found if c.type in kinds}


def resize_events(node: NodeInMemory, name: str = "p") -> list[str]:
    """The reasons of events about resizes."""
    return [e.split(":")[0] for e in node.events(name) if e.startswith("Resize")]


async def running(node: NodeInMemory, cpu: str = "1", name: str = "p") -> None:
    node.create(asking(a_pod(name), cpu))
    await node.passes(1)


@pytest.mark.parametrize("is_silent", [False, True])
async def test_a_resize_that_fits_is_granted_and_put_in_force(
    node: ResizingNode, is_silent: bool
) -> None:
    node.runtime.is_silent = is_silent
    await running(node)
    resize(node, "2")
    await node.passes(0)
    assert node.runtime.resized == ["p a=2"]
    assert shown(node) == "2/2"
    assert conditions(node) == {}
    assert node.looks("p") == "Running a:running+"
    summary = '{"containers":[{"name":"a","resources":{"requests":{"cpu":"2"}}}],"generation":1}'
    assert node.events("p", "ResizeStarted", "ResizeCompleted") == [
        f"ResizeStarted: Pod resize started: {summary}",
        f"ResizeCompleted: Pod resize completed: {summary}",
    ]


async def test_a_grant_is_on_the_disk_before_it_is_put_in_force(
    node: ResizingNode, tmp_path: Path
) -> None:
    seen: list[str] = []

    def look(_: Pod) -> None:
        state = FileState(tmp_path)
        for book in (state.allocated, state.actuated):
            found = book.container_resources(UID, "a")
            assert found is not None
            seen.append((found.requests or {})["cpu"].canonical)

    node.runtime.before_resize = look
    await running(node)
    resize(node, "2")
    await node.passes(0)
    assert seen == ["2", "1"]
    seen.clear()
    look(stored(node))
    assert seen == ["2", "2"]


async def test_a_resize_that_does_not_fit_waits_for_another_pod(node: ResizingNode) -> None:
    await running(node)
    await running(node, "2", "q")
    resize(node, "3")
    await node.passes(1)
    assert (shown(node), conditions(node)) == ("1/1", {PENDING: "Deferred@1"})
    (event,) = node.events("p", "ResizeDeferred")
    why = "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000"
    assert event.startswith("ResizeDeferred: Pod resize OutOfcpu: ")
    assert event.endswith(f'"generation":1,"error":"{why}"}}')
    assert node.runtime.resized == []
    node.delete("q")
    await node.passes(3)
    assert (shown(node), conditions(node)) == ("3/3", {})
    assert resize_events(node) == ["ResizeDeferred", "ResizeStarted", "ResizeCompleted"]


async def test_resources_are_granted_once_another_pod_returned_them(node: ResizingNode) -> None:
    await running(node)
    await running(node, "3", "q")
    resize(node, "2")
    await node.passes(1)
    node.runtime.refusal = "not now"
    resize(node, "2", "q")
    await node.passes(1)
    assert conditions(node) == {PENDING: "Deferred@1"}
    assert (shown(node, "q"), conditions(node, "q")) == ("2/3", {IN_PROGRESS: "Error@1"})
    node.runtime.refusal = ""
    await node.passes(30)
    assert (shown(node, "q"), conditions(node, "q")) == ("2/2", {})
    assert (shown(node), conditions(node)) == ("2/2", {})


async def test_a_new_pod_gets_nothing_that_is_not_returned_yet(node: ResizingNode) -> None:
    await running(node, "3")
    node.runtime.refusal = "not now"
    resize(node, "1")
    await node.passes(1)
    node.create(asking(a_pod("q"), "2"))
    await node.passes(1)
    assert node.looks("q") == "Failed/OutOfcpu"


async def test_a_resize_that_is_taken_back_does_not_wait_any_more(node: ResizingNode) -> None:
    await running(node)
    resize(node, "9")
    await node.passes(1)
    assert conditions(node) == {PENDING: "Deferred@1"}
    resize(node, "1")
    await node.passes(0)
    assert (shown(node), conditions(node)) == ("1/1", {})
    assert resize_events(node) == ["ResizeDeferred"]


async def test_a_resize_that_can_never_be_done_is_not_tried_again(node: ResizingNode) -> None:
    await running(node)
    asked: list[str] = []

    def never(pod: Pod, *_: object) -> ResizePending:
        asked.append(pod.name)
        return ResizePending(reason="Infeasible", message="never")

    node.agent.decide_resize = never
    resize(node, "2")
    await node.passes(500)
    assert (shown(node), conditions(node)) == ("1/1", {PENDING: "Infeasible@1"})
    assert (asked, node.runtime.resized) == (["p"], [])
    assert resize_events(node) == ["ResizeInfeasible"]


async def test_those_who_wait_are_tried_every_three_minutes(node: ResizingNode) -> None:
    await running(node)
    resize(node, "9")
    await node.passes(1)
    decide = node.agent.decide_resize
    asked: list[float] = []

    def listen(pod: Pod, granted: Pod, others: RequestedResources) -> ResizeDecision:
        asked.append(node.clock.now())
        return decide(pod, granted, others)

    node.agent.decide_resize = listen
    await node.passes(600)
    assert len(asked) == 3
    assert resize_events(node) == ["ResizeDeferred"]


async def test_who_is_more_important_gets_what_there_is(node: ResizingNode) -> None:
    await running(node, "2", "q")
    for name, priority in (("low", 1), ("high", 7)):
        node.create(with_priority(asking(a_pod(name), "1"), priority))
    await node.passes(1)
    for name in ("low", "high"):
        resize(node, "2", name)
        await node.passes(1)
    node.delete("q")
    await node.passes(3)
    assert node.runtime.resized == ["high a=2", "low a=2"]


async def test_a_container_whose_policy_says_so_is_started_again(node: ResizingNode) -> None:
    node.create(asking(restarting(a_pod("p", "stop=2s")), "1"))
    await node.passes(1)
    resize(node, "2")
    await node.passes(1)
    assert shown(node) == "2/1"
    assert conditions(node) == {IN_PROGRESS: "@1"}
    await node.passes(3)
    assert node.looks("p") == "Running a:running+(1)"
    assert (shown(node), conditions(node)) == ("2/2", {})
    assert node.events("p", "Killing") == ["Killing: Container a resize requires restart"]
    assert node.calls("start") == ["start p sandbox", "start p a-0", "start p a-1"]
    assert node.runtime.resized == ["p"]
    assert resize_events(node) == ["ResizeStarted", "ResizeCompleted"]
    await node.passes(300)
    assert node.looks("p") == "Running a:running+(1)"


async def test_restarts_for_resizes_wait_as_others_do(node: ResizingNode) -> None:
    node.create(asking(restarting(a_pod("p")), "1"))
    await node.passes(1)
    for number, cpu in enumerate(("2", "3"), start=1):
        resize(node, cpu)
        await node.passes(1)
        assert node.looks("p") == f"Running a:running+({number})"
    resize(node, "1")
    await node.passes(1)
    assert node.looks("p") == "Running a:CrashLoopBackOff(2)"
    assert (shown(node), conditions(node)) == ("1/1", {})
    await node.passes(10)
    assert node.looks("p") == "Running a:running+(3)"
    assert node.runtime.resized == ["p", "p", "p"]


@pytest.mark.parametrize("is_silent", [False, True])
async def test_a_failed_resize_is_reported_once_and_retried(
    node: ResizingNode, is_silent: bool
) -> None:
    node.runtime.is_silent = is_silent
    await running(node)
    node.runtime.refusal = "limit below usage"
    resize(node, "2")
    await node.passes(40)
    assert (shown(node), conditions(node)) == ("2/1", {IN_PROGRESS: "Error@1"})
    assert resize_events(node) == ["ResizeStarted", "ResizeError"]
    node.runtime.refusal = ""
    await node.passes(20)
    assert (shown(node), conditions(node)) == ("2/2", {})
    assert resize_events(node)[2:] == ["ResizeCompleted"]


async def test_a_newer_resize_clears_the_error_of_an_older_one(node: ResizingNode) -> None:
    await running(node)
    node.runtime.refusal = "limit below usage"
    resize(node, "2")
    await node.passes(1)
    resize(node, "4")
    await node.passes(1)
    assert (shown(node), conditions(node)) == ("4/1", {IN_PROGRESS: "Error@2"})
    node.runtime.refusal = ""
    resize(node, "3")
    await node.passes(0)
    assert (shown(node), conditions(node)) == ("3/3", {})


async def test_a_container_that_ends_is_started_with_its_new_size(node: ResizingNode) -> None:
    await running(node)
    node.runtime.refusal = "not now"
    resize(node, "2")
    await node.passes(1)
    await node.runtime.crash("uid-p")
    node.runtime.refusal = ""
    await node.passes(30)
    assert node.looks("p") == "Running a:running+(1)"
    assert (shown(node), conditions(node)) == ("2/2", {})


async def test_a_failed_resize_of_the_pod_level_is_retried(node: ResizingNode) -> None:
    node.create(asking(restarting(a_pod("p")), "1"))
    await node.passes(1)
    node.runtime.refusal = "not now"
    resize(node, "2")
    await node.passes(30)
    assert node.looks("p") == "Running a:running+(1)"
    assert (shown(node), conditions(node)) == ("2/2", {IN_PROGRESS: "Error@1"})
    await node.restart()
    node.runtime.refusal = ""
    await node.passes(30)
    assert (node.runtime.resized, conditions(node)) == (["p a=2"], {})
    assert node.looks("p") == "Running a:running+(1)"


async def test_a_resize_while_no_agent_was_there_is_decided_by_the_next(node: ResizingNode) -> None:
    await running(node)
    await node.stop()
    resize(node, "2")
    await node.start()
    await node.passes(2)
    assert (node.runtime.resized, shown(node), conditions(node)) == (["p a=2"], "2/2", {})


async def test_a_pod_that_ends_shows_what_it_was_granted_until_the_end(node: ResizingNode) -> None:
    node.create(asking(a_pod("p", "stop=5s"), "1"))
    await node.passes(1)
    resize(node, "9")
    await node.passes(1)
    node.delete("p")
    await node.passes(3)
    assert shown(node) == "1/1"


async def test_a_resize_before_the_first_start_is_decided_too(node: ResizingNode) -> None:
    node.runtime.is_down = True
    node.create(asking(a_pod("p"), "1"))
    resize(node, "9")
    await node.passes(1)
    node.runtime.is_down = False
    await node.passes(20)
    assert (shown(node), conditions(node)) == ("1/1", {PENDING: "Deferred@1"})


def deferred(node: ResizingNode) -> None:
    resize(node, "9")


def failing(node: ResizingNode) -> None:
    node.runtime.refusal = "not now"
    resize(node, "2")


def done(node: ResizingNode) -> None:
    resize(node, "2")


@pytest.mark.parametrize(
    ("happens", "resources", "shows"),
    [
        (deferred, "1/1", {PENDING: "Deferred@1"}),
        (failing, "2/1", {IN_PROGRESS: "Error@1"}),
        (done, "2/2", {}),
    ],
)
async def test_after_a_restart_all_is_as_before(
    node: ResizingNode,
    happens: Callable[[ResizingNode], None],
    resources: str,
    shows: dict[str, str],
) -> None:
    await running(node)
    happens(node)
    await node.passes(1)
    before = (shown(node), conditions(node), resize_events(node), list(node.runtime.resized))
    assert before[:2] == (resources, shows)
    for _ in range(2):
        await node.restart(after=5)
        await node.passes(5)
        after = (shown(node), conditions(node), resize_events(node), list(node.runtime.resized))
        assert after == before
    assert node.looks("p") == "Running a:running+"


async def test_a_grant_is_put_in_force_by_the_next_agent(node: ResizingNode) -> None:
    await running(node)
    node.runtime.is_down = True
    resize(node, "2")
    await node.passes(1)
    await node.stop()
    node.runtime.is_down = False
    await node.start()
    await node.passes(5)
    assert node.runtime.resized == ["p a=2"]
    assert (shown(node), conditions(node)) == ("2/2", {})
    assert resize_events(node) == ["ResizeStarted", "ResizeCompleted"]


async def test_nothing_is_granted_before_all_pods_are_known(tmp_path: Path) -> None:
    node = ResizingNode(tmp_path)
    node.delivers = ("api",)
    async with node:
        await running(node)
        resize(node, "3")
        await node.passes(5)
        assert (shown(node), node.runtime.resized) == ("1/1", [])
        node.write_manifests(asking(a_pod("s", uid="uid-s"), "2"))
        await node.passes(5)
        assert (shown(node), conditions(node)) == ("1/1", {PENDING: "Deferred@1"})


async def test_a_disk_that_is_full_grants_nothing(tmp_path: Path) -> None:
    async with ResizingNode(tmp_path / "state") as node:
        await running(node)
        (tmp_path / "state").rename(tmp_path / "away")
        (tmp_path / "state").write_text("in the way")
        resize(node, "2")
        await node.passes(5)
        assert (shown(node), node.runtime.resized) == ("1/1", [])
        (tmp_path / "state").unlink()
        (tmp_path / "away").rename(tmp_path / "state")
        await node.passes(200)
        assert (shown(node), conditions(node)) == ("2/2", {})
