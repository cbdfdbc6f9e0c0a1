"""In-place resize of running processes, with and without cgroups."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec import structs

from podstatus.kube.objects.containers import Container, ResourceRequirements
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.runtime_facts import PodFacts, ResourceFacts
from podstatus.kube.scalars.quantity import Quantity
from podstatus.runtime.port import CannotResizeError, ResizesPods
from podstatus.runtime.process.cgroups.pod_cgroups import Cgroups
from podstatus.runtime.process.process_runtime import ProcessRuntime
from podstatus.testing.builders import make_pod
from tests.runtime.process.cgroups.cgroup_scene import Machine, resources
from tests.support.processes.process_runtime import open_process_runtime

SLEEPS = ("sleep", "600")


class Node:
    """A runtime in a folder that can be reopened."""

    def __init__(self, folder: Path, cgroups: Cgroups | None) -> None:
        self.folder = folder
        self.cgroups = cgroups
        self.unlimited: list[tuple[str | None, str]] = []

    @asynccontextmanager
    async def open(self) -> AsyncIterator[ProcessRuntime]:
        async with open_process_runtime(
            self.folder,
            isolated=False,
            cgroups=self.cgroups,
            on_unlimited=lambda _, name, why: self.unlimited.append((name, why)),
        ) as runtime:
            yield runtime

    async def clear(self) -> None:
        async with self.open() as runtime:
            for pod in await runtime.list_pods():
                await runtime.remove_pod(pod.uid)


@pytest.fixture
def bare(folder: Path) -> Iterator[Node]:
    node = Node(folder, None)
    yield node
    asyncio.run(node.clear())


@pytest.fixture
def limited(folder: Path, cgroups: Cgroups) -> Iterator[Node]:
    node = Node(folder, cgroups)
    yield node
    asyncio.run(node.clear())


def asking(requested: ResourceRequirements, *, own: ResourceRequirements | None = None) -> Pod:
    container = Container(name="app", image="i", command=SLEEPS, resources=requested)
    spec = PodSpec(containers=(container,), resources=own)
    return structs.replace(make_pod("p", uid="uid-p"), spec=spec)


async def start(runtime: ProcessRuntime, pod: Pod) -> dict[str, str]:
    await runtime.start_pod(pod)
    (container,) = pod.spec.containers or ()
    return {"app": await runtime.start_container(pod, container, restart_count=0)}


async def facts(runtime: ProcessRuntime) -> PodFacts:
    (pod,) = await runtime.list_pods()
    return pod.facts


def holds(request: str, limit: str, memory: str) -> ResourceFacts:
    return ResourceFacts(
        cpu_request=Quantity(request), cpu_limit=Quantity(limit), memory_limit=Quantity(memory)
    )


async def resized_and_known_to_the_next(node: Node) -> None:
    async with node.open() as runtime:
        assert isinstance(runtime, ResizesPods)
        ids = await start(runtime, asking(resources("100m 32Mi", "200m 64Mi")))
        await runtime.resize_pod(asking(resources("150m 48Mi", "300m 100M")), ids)
        before = await facts(runtime)
        expected = holds("150m", "300m", "100000000")
        assert before.resources == expected
        (app,) = before.containers
        assert app.resources == structs.replace(expected, memory_request=Quantity("48Mi"))
    async with node.open() as runtime:
        assert await facts(runtime) == before


async def test_with_cgroups_what_holds_is_listed_also_by_the_next_agent(limited: Node) -> None:
    await resized_and_known_to_the_next(limited)
    assert limited.unlimited == []


async def test_without_cgroups_it_is_recorded_and_listed(bare: Node) -> None:
    await resized_and_known_to_the_next(bare)
    why = "cpu is not limited: cgroups are not used; memory is not limited: cgroups are not used"
    assert bare.unlimited == [("app", why)] * 2


async def test_the_kernel_has_the_last_word(limited: Node) -> None:
    """The next agent lists the limits in force, whatever wrote them to the cgroup."""

    async with limited.open() as runtime:
        pod = asking(resources("100m 32Mi", "200m 64Mi"))
        ids = await start(runtime, pod)
        await runtime.resize_pod(asking(resources("100m 32Mi", "300m 96Mi")), ids)
    assert limited.cgroups is not None
    limited.cgroups.create(pod.uid, ids["app"].removeprefix("process://"), resources("", "100m"))
    async with limited.open() as runtime:
        (app,) = (await facts(runtime)).containers
        assert app.resources is not None
        assert (app.resources.cpu_limit, app.resources.memory_limit) == ("100m", "96Mi")


async def test_what_failed_halfway_is_listed_as_far_as_it_came(
    folder: Path, tmp_path: Path
) -> None:
    machine = Machine(tmp_path)
    node = Node(folder, machine.cgroups)

    async with node.open() as runtime:
        ids = await start(runtime, asking(resources("100m 32Mi", "200m 64Mi")))
        machine.kernel.refused = {"cpu.max"}
        with pytest.raises(CannotResizeError, match=r"^cpu\.max of the pod cannot be"):
            await runtime.resize_pod(asking(resources("100m 32Mi", "400m 96Mi")), ids)
        (app,) = (await facts(runtime)).containers
        assert app.resources is not None
        assert (app.resources.cpu_limit, app.resources.memory_limit) == ("200m", "96Mi")
        machine.kernel.refused = set()
        await runtime.resize_pod(asking(resources("100m 32Mi", "400m 96Mi")), ids)
        (app,) = (await facts(runtime)).containers
        assert app.resources is not None
        assert app.resources.cpu_limit == "400m"
    await node.clear()


def test_who_is_cancelled_waits_for_the_kernel(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the next call could overtake this one."""
    machine = Machine(tmp_path)
    node = Node(folder, machine.cgroups)
    begun, over = threading.Event(), threading.Event()
    write = machine.kernel.write

    def slow_write(file: Path, text: str) -> None:
        begun.set()
        assert over.wait(90)
        write(file, text)

    async def story() -> None:
        async with node.open() as runtime:
            ids = await start(runtime, asking(resources("100m 32Mi", "200m 64Mi")))
            monkeypatch.setattr(machine.kernel, "write", slow_write)
            larger = asking(resources("100m 32Mi", "400m 96Mi"))
            resize = asyncio.ensure_future(runtime.resize_pod(larger, ids))
            assert await asyncio.to_thread(begun.wait, 30)
            resize.cancel()
            done, _ = await asyncio.wait([resize], timeout=0.05)
            assert not done
            over.set()
            await asyncio.wait([resize])
            assert resize.cancelled()
            (app,) = (await facts(runtime)).containers
            assert app.resources is not None
            assert app.resources.cpu_limit == "400m"

    asyncio.run(story())
    asyncio.run(node.clear())


async def test_a_pod_as_a_whole_is_resized_without_its_containers(limited: Node) -> None:
    async with limited.open() as runtime:
        each = resources("100m 32Mi", "200m 64Mi")
        ids = await start(runtime, asking(each, own=resources("200m 64Mi", "400m 128Mi")))
        pod = asking(each, own=resources("300m 64Mi", "600m 256Mi"))
        await runtime.resize_pod(pod, ids)
        assert (await facts(runtime)).resources == holds("300m", "600m", "256Mi")
    async with limited.open() as runtime:
        assert (await facts(runtime)).resources == holds("300m", "600m", "256Mi")


async def test_an_older_attempt_does_not_keep_a_pod_from_shrinking(limited: Node) -> None:
    async with limited.open() as runtime:
        large, small = asking(resources("", "1 64Mi")), asking(resources("", "200m 64Mi"))
        ids = await start(runtime, large)
        await runtime.stop_container(large.uid, ids["app"], grace_seconds=0)
        await runtime.resize_pod(small, {})
        (container,) = small.spec.containers or ()
        await runtime.start_container(small, container, restart_count=1)
        pod_facts = await facts(runtime)
        assert pod_facts.resources is not None
        assert pod_facts.resources.cpu_limit == "200m"
        assert pod_facts.containers[0].resources is not None
        assert pod_facts.containers[0].resources.cpu_limit == "200m"
    assert limited.unlimited == []


async def test_a_pod_that_does_not_run_cannot_be_resized(bare: Node) -> None:
    pod = asking(resources("", "1 64Mi"))
    async with bare.open() as runtime:
        with pytest.raises(CannotResizeError, match="shim is not running"):
            await runtime.resize_pod(pod, {})
        ids = await start(runtime, pod)
        await runtime.stop_pod(pod.uid)
        with pytest.raises(CannotResizeError, match="shim is not running"):
            await runtime.resize_pod(pod, ids)
