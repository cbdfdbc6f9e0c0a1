"""What is promised by a runtime that can resize, for those that can."""

from collections.abc import Mapping

import pytest
from msgspec import structs

from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.runtime_facts import ContainerRunState, ResourceFacts
from podstatus.kube.scalars.quantity import Quantity
from podstatus.runtime.port import ResizesPods
from podstatus.testing.runtime_suite.scene import (
    LONG_GRACE,
    Behaviour,
    RuntimeUnderTest,
    Scene,
    only_container,
    played,
)

SMALL = {"cpu": Quantity("200m"), "memory": Quantity("256Mi")}
LARGE = {"cpu": Quantity("400m"), "memory": Quantity("512Mi")}


class Resizes(RuntimeUnderTest):
    """The tests, as a part of `RuntimeSuite`."""

    @played
    async def test_who_resizes_lists_what_a_container_was_started_with(self, scene: Scene) -> None:
        """All four amounts: what is not said is taken to be as it was before."""
        pod, container_id = await self._start(scene)
        assert await _in_force(scene, pod, container_id) == _both(SMALL)

    @played
    async def test_a_running_container_is_given_other_resources(self, scene: Scene) -> None:
        """It is the same attempt, and runs on; then the way back."""
        pod, container_id = await self._start(scene)
        before = await scene.find(pod, container_id)
        for amounts in (LARGE, SMALL):
            await _resize(scene, _asking(pod, amounts), container_id)
            found = await scene.find(pod, container_id)
            assert found is not None
            assert before is not None
            assert found.state is ContainerRunState.RUNNING
            assert (found.started_at, found.restart_count) == (
                before.started_at,
                before.restart_count,
            )
            assert await _in_force(scene, pod, container_id) == _both(amounts)

    @played
    async def test_resized_again_nothing_changes(self, scene: Scene) -> None:
        """A call that was cancelled, or an agent that died, is repeated."""
        pod, container_id = await self._start(scene)
        large = _asking(pod, LARGE)
        await _resize(scene, large, container_id)
        before = list(await scene.soon(scene.runtime.list_pods()))
        await _resize(scene, large, container_id)
        assert list(await scene.soon(scene.runtime.list_pods())) == before

    @played
    async def test_the_next_agent_knows_what_was_resized(self, scene: Scene) -> None:
        """What is in force, not what it was started with."""
        pod, container_id = await self._start(scene)
        await _resize(scene, _asking(pod, LARGE), container_id)
        before = await scene.facts(pod)
        if not self.keeps_records:
            pytest.skip("its records do not outlive the agent")
        await scene.open()
        assert await scene.facts(pod) == before

    @played
    async def test_a_container_that_is_not_named_keeps_what_it_has(self, scene: Scene) -> None:
        """The pod as a whole may be resized alone: before a container is started again."""
        pod, container_id = await self._start(scene)
        await _resize(scene, _asking(pod, LARGE), None)
        assert await _in_force(scene, pod, container_id) == _both(SMALL)

    @played
    async def test_a_container_that_has_ended_is_no_reason_to_fail(self, scene: Scene) -> None:
        """Nobody can know in time; the next attempt is given what its pod asks for then."""
        pod, container_id = await self._start(scene)
        await scene.stop(pod, container_id, grace=LONG_GRACE)
        large = _asking(pod, LARGE)
        await _resize(scene, large, container_id)
        again = await scene.start_again(large, restart_count=1)
        assert await _in_force(scene, pod, again) == _both(LARGE)

    async def _start(self, scene: Scene) -> tuple[Pod, str]:
        if not isinstance(scene.runtime, ResizesPods):
            pytest.skip("it does not resize")
        pod = _asking(self.make_pod("pod", Behaviour.OBEYS), SMALL)
        await scene.soon(scene.runtime.start_pod(pod))
        return pod, await scene.start_again(pod, restart_count=0)


def _asking(pod: Pod, amounts: Mapping[str, Quantity]) -> Pod:
    resources = ResourceRequirements(requests=dict(amounts), limits=dict(amounts))
    container = structs.replace(only_container(pod), resources=resources)
    return structs.replace(pod, spec=structs.replace(pod.spec, containers=(container,)))


async def _resize(scene: Scene, pod: Pod, container_id: str | None) -> None:
    assert isinstance(scene.runtime, ResizesPods)
    ids = {} if container_id is None else {only_container(pod).name: container_id}
    await scene.soon(scene.runtime.resize_pod(pod, ids))


async def _in_force(scene: Scene, pod: Pod, container_id: str) -> dict[str, int | None]:
    found = await scene.find(pod, container_id)
    facts = (found.resources if found is not None else None) or ResourceFacts()
    said = structs.asdict(facts)
    return {name: None if amount is None else amount.nanos for name, amount in said.items()}


def _both(amounts: Mapping[str, Quantity]) -> dict[str, int]:
    return {
        f"{name}_{side}": amount.nanos
        for name, amount in amounts.items()
        for side in ("request", "limit")
    }
