"""Simulated containers are resized as scripted."""

from pathlib import Path

import pytest
from msgspec import structs

from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.runtime_facts import ResourceFacts
from podstatus.kube.scalars.quantity import Quantity
from podstatus.runtime.port import CannotResizeError, ResizesPods
from podstatus.runtime.simulated import SimulatedRuntime
from podstatus.testing.builders import make_pod
from podstatus.testing.clock import FakeClock
from tests.runtime.simulated.simulated_node import Node

MI = 2**20


def asking(pod: Pod, cpu: str, memory: str) -> Pod:
    amounts = {"cpu": Quantity(cpu), "memory": Quantity(memory)}
    resources = ResourceRequirements(requests=amounts, limits=amounts)
    (container,) = pod.spec.containers or ()
    container = structs.replace(container, resources=resources)
    return structs.replace(pod, spec=structs.replace(pod.spec, containers=(container,)))


def small(script: str) -> Pod:
    return asking(make_pod(annotations={"podstatus.dev/simulate": script}), "100m", "64Mi")


async def started(node: Node, script: str) -> tuple[Pod, str]:
    pod = small(script)
    await node.runtime.start_pod(pod)
    return pod, await node.again(pod, restart_count=0)


async def cpu(node: Node, pod: Pod) -> Quantity | None:
    return ((await node.newest(pod)).resources or ResourceFacts()).cpu_limit


def test_it_resizes() -> None:
    assert isinstance(SimulatedRuntime(FakeClock()), ResizesPods)


async def test_a_resize_takes_as_long_as_scripted(node: Node) -> None:
    pod, id = await started(node, "resize=5s")
    large = asking(pod, "200m", "128Mi")
    async with node.meanwhile(node.runtime.resize_pod(large, {"app": id})) as resize:
        await node.clock.advance(4.9)
        assert (await cpu(node, pod), resize.done()) == ("100m", False)
        await node.clock.advance(0.1)
        assert (await cpu(node, pod), resize.done()) == ("200m", True)


async def test_a_resize_may_hang_and_be_given_up(node: Node) -> None:
    pod, id = await started(node, "resize=never")
    resize = node.runtime.resize_pod(asking(pod, "200m", "128Mi"), {"app": id})
    async with node.meanwhile(resize) as hanging:
        await node.clock.advance(10_000)
        assert not hanging.done()
    assert await cpu(node, pod) == "100m"


async def test_a_resize_may_fail(node: Node) -> None:
    pod, id = await started(node, "resize=fail; resize=0s")
    large = asking(pod, "200m", "128Mi")
    with pytest.raises(CannotResizeError, match="'app': its script has resize=fail"):
        await node.runtime.resize_pod(large, {"app": id})
    assert await cpu(node, pod) == "100m"
    await node.runtime.stop_container(pod.uid, id, grace_seconds=1)
    id = await node.again(pod, restart_count=1)
    await node.runtime.resize_pod(large, {"app": id})
    assert await cpu(node, pod) == "200m"


async def test_a_pod_without_a_sandbox_cannot_be_resized(node: Node) -> None:
    with pytest.raises(CannotResizeError, match="has no ready sandbox"):
        await node.runtime.resize_pod(small(""), {})


async def test_what_is_used_and_what_the_pod_has_follow(tmp_path: Path) -> None:
    node = Node(tmp_path)
    pod, id = await started(node, "")
    await node.runtime.resize_pod(asking(pod, "200m", "128Mi"), {"app": id})
    node.restart()
    used = (await node.runtime.usage())[pod.uid]
    assert (used.cpu_cores, used.memory_bytes) == (0.1, 64 * MI)
    assert (await node.facts(pod)).resources == ResourceFacts(
        cpu_request=Quantity("200m"),
        cpu_limit=Quantity("200m"),
        memory_limit=Quantity("128Mi"),
    )
