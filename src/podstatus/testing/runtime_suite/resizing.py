"""Conformance tests of resizing, for runtimes that support it."""

from collections.abc import Mapping

import pytest
from msgspec import structs

from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.runtime_facts import ContainerRunState, ResourceFacts
from podstatus.kube.scalars.quantity import Quantity
from podstatus.runtime.port import ResizesPods
from podstatus.testing.runtime_suite.scene import (
    LONG_GRACE_SECONDS,
    Behaviour,
    RuntimeHarness,
    RuntimeUnderTest,
    only_container,
    runtime_test,
)

SMALL = {"cpu": Quantity("200m"), "memory": Quantity("256Mi")}
LARGE = {"cpu": Quantity("400m"), "memory": Quantity("512Mi")}


class ResizingTests(RuntimeUnderTest):
    """The tests of resizing, as a part of `RuntimeSuite`."""

    @runtime_test
    async def test_the_resources_of_a_started_container_are_listed(
        self, scene: RuntimeHarness
    ) -> None:
        """All four amounts: a missing one would be taken as unchanged."""
        pod, container_id = await self._start(scene)
        assert await _actuated_resources(scene, pod, container_id) == _requests_and_limits(SMALL)

    @runtime_test
    async def test_a_running_container_is_given_other_resources(
        self, scene: RuntimeHarness
    ) -> None:
        """The attempt stays the same and keeps running; also when it is resized back."""
        pod, container_id = await self._start(scene)
        before = await scene.find(pod, container_id)
        for amounts in (LARGE, SMALL):
            await _resize(scene, _with_resources(pod, amounts), container_id)
            container = await scene.find(pod, container_id)
            assert container is not None
            assert before is not None
            assert container.state is ContainerRunState.RUNNING
            assert (container.started_at, container.restart_count) == (
                before.started_at,
                before.restart_count,
            )
            assert await _actuated_resources(scene, pod, container_id) == _requests_and_limits(
                amounts
            )

    @runtime_test
    async def test_resized_again_nothing_changes(self, scene: RuntimeHarness) -> None:
        """A cancelled call, or one of an agent that died, is repeated."""
        pod, container_id = await self._start(scene)
        large = _with_resources(pod, LARGE)
        await _resize(scene, large, container_id)
        before = list(await scene.call(scene.runtime.list_pods()))
        await _resize(scene, large, container_id)
        assert list(await scene.call(scene.runtime.list_pods())) == before

    @runtime_test
    async def test_the_next_agent_knows_what_was_resized(self, scene: RuntimeHarness) -> None:
        """The actuated resources, not those of the start."""
        pod, container_id = await self._start(scene)
        await _resize(scene, _with_resources(pod, LARGE), container_id)
        before = await scene.facts(pod)
        if not self.persists_records:
            pytest.skip("the runtime does not persist its records")
        await scene.open()
        assert await scene.facts(pod) == before

    @runtime_test
    async def test_a_container_that_is_not_named_keeps_what_it_has(
        self, scene: RuntimeHarness
    ) -> None:
        """A pod may be resized without its containers: before a container is restarted."""
        pod, container_id = await self._start(scene)
        await _resize(scene, _with_resources(pod, LARGE), None)
        assert await _actuated_resources(scene, pod, container_id) == _requests_and_limits(SMALL)

    @runtime_test
    async def test_a_container_that_has_ended_is_no_reason_to_fail(
        self, scene: RuntimeHarness
    ) -> None:
        """The caller cannot know in time; the next attempt gets the resources of its pod."""
        pod, container_id = await self._start(scene)
        await scene.stop(pod, container_id, grace=LONG_GRACE_SECONDS)
        large = _with_resources(pod, LARGE)
        await _resize(scene, large, container_id)
        restarted = await scene.start_container(large, restart_count=1)
        assert await _actuated_resources(scene, pod, restarted) == _requests_and_limits(LARGE)

    async def _start(self, scene: RuntimeHarness) -> tuple[Pod, str]:
        if not isinstance(scene.runtime, ResizesPods):
            pytest.skip("the runtime does not support resizing")
        pod = _with_resources(self.make_pod("pod", Behaviour.OBEYS), SMALL)
        await scene.call(scene.runtime.start_pod(pod))
        return pod, await scene.start_container(pod, restart_count=0)


def _with_resources(pod: Pod, amounts: Mapping[str, Quantity]) -> Pod:
    resources = ResourceRequirements(requests=dict(amounts), limits=dict(amounts))
    container = structs.replace(only_container(pod), resources=resources)
    return structs.replace(pod, spec=structs.replace(pod.spec, containers=(container,)))


async def _resize(scene: RuntimeHarness, pod: Pod, container_id: str | None) -> None:
    assert isinstance(scene.runtime, ResizesPods)
    ids = {} if container_id is None else {only_container(pod).name: container_id}
    await scene.call(scene.runtime.resize_pod(pod, ids))


async def _actuated_resources(
    scene: RuntimeHarness, pod: Pod, container_id: str
) -> dict[str, int | None]:
    container = await scene.find(pod, container_id)
    facts = (container.resources if container is not None else None) or ResourceFacts()
    amounts = structs.asdict(facts)
    return {name: None if amount is None else amount.nanos for name, amount in amounts.items()}


def _requests_and_limits(amounts: Mapping[str, Quantity]) -> dict[str, int]:
    return {
        f"{name}_{side}": amount.nanos
        for name, amount in amounts.items()
        for side in ("request", "limit")
    }
