"""Conformance tests of starting: pods, containers, attempts, failures."""

import asyncio

import pytest

from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.runtime_facts import ContainerRunState, SandboxState
from podstatus.kube.scalars.time import UNSET_TIME
from podstatus.runtime.port import CannotStartError
from podstatus.testing.runtime_suite.scene import (
    Behaviour,
    RuntimeHarness,
    RuntimeUnderTest,
    only_container,
    runtime_test,
)

_RUNNING, _EXITED = ContainerRunState.RUNNING, ContainerRunState.EXITED


class StartingTests(RuntimeUnderTest):
    """The tests of starting, as a part of `RuntimeSuite`."""

    @runtime_test
    async def test_it_has_a_name_of_one_word_and_a_version(self, scene: RuntimeHarness) -> None:
        """The name is the prefix of container IDs; both are reported in the Node."""
        name = scene.runtime.name
        assert name == name.strip().lower(), f"{name!r} is the prefix of container IDs"
        assert name.isidentifier(), f"{name!r} is not one word"
        assert isinstance(scene.runtime.version, str)

    @runtime_test
    async def test_a_started_pod_is_listed_with_a_ready_sandbox(
        self, scene: RuntimeHarness
    ) -> None:
        """With its namespace and name."""
        pod = self.make_pod("pod", Behaviour.OBEYS)
        await scene.call(scene.runtime.start_pod(pod))
        pods = await scene.call(scene.runtime.list_pods())
        assert len(pods) == 1, "one pod was started"
        listed = pods[0]
        assert (listed.uid, listed.namespace, listed.name) == (pod.uid, pod.namespace, pod.name)
        assert listed.facts.sandboxes[0].state is SandboxState.READY

    @runtime_test
    async def test_starting_a_started_pod_changes_nothing(self, scene: RuntimeHarness) -> None:
        """A ready sandbox stays, and its containers keep running."""
        pod, container_id = await scene.start(Behaviour.OBEYS)
        before = await scene.facts(pod)
        await scene.call(scene.runtime.start_pod(pod))
        assert (await scene.facts(pod)).sandboxes == before.sandboxes
        container = await scene.find(pod, container_id)
        assert container is not None
        assert container.state is _RUNNING

    @runtime_test
    async def test_a_started_container_is_listed_as_running(self, scene: RuntimeHarness) -> None:
        """When the start returns, not later."""
        pod, container_id = await scene.start(Behaviour.OBEYS, restart_count=0)
        container = await scene.find(pod, container_id)
        assert container is not None, f"{container_id} was started and is not listed"
        assert container_id.startswith(f"{scene.runtime.name}://")
        assert (container.name, container.state) == (only_container(pod).name, _RUNNING)
        assert container.restart_count in (0, None)
        assert container.started_at != UNSET_TIME

    @runtime_test
    async def test_a_start_that_is_repeated_finds_the_attempt_that_was_made(
        self, scene: RuntimeHarness
    ) -> None:
        """A cancelled call that is repeated must not start a second attempt."""
        pod, first = await scene.start(Behaviour.OBEYS)
        assert await scene.start_container(pod, restart_count=0) == first
        assert [attempt.id for attempt in (await scene.facts(pod)).containers] == [first]

    @runtime_test
    async def test_another_attempt_is_listed_before_the_one_that_ended(
        self, scene: RuntimeHarness
    ) -> None:
        """The newest attempt is the state, the one before it the last state."""
        pod, first = await scene.start(Behaviour.EXITS)
        ended = await scene.wait_for_exit(pod, first)
        second = await scene.start_container(pod, restart_count=1)
        assert second != first, "each attempt has an ID of its own"
        attempts = (await scene.facts(pod)).containers
        assert [attempt.id for attempt in attempts[:2]] == [second, first], "the exit is lost"
        newest, before = attempts[:2]
        assert newest.created_at >= before.created_at
        assert newest.restart_count in (1, None)
        assert (before.exit_code, before.finished_at) == (3, ended.finished_at)

    @runtime_test
    async def test_what_cannot_be_executed_says_why(self, scene: RuntimeHarness) -> None:
        """With a reason and a message; a listed attempt has the reason StartError."""
        pod = self.make_pod("pod", Behaviour.FAILS)
        await scene.call(scene.runtime.start_pod(pod))
        for restart_count in (0, 1):
            with pytest.raises(CannotStartError) as caught:
                await scene.start_container(pod, restart_count=restart_count)
            assert caught.value.reason.isidentifier(), "the reason is not one word"
            assert caught.value.message, "the message is empty"
        for attempt in (await scene.facts(pod)).containers:
            assert (attempt.state, attempt.exit_code, attempt.reason) == (
                _EXITED,
                128,
                "StartError",
            )

    @runtime_test
    async def test_a_start_that_was_cancelled_can_be_repeated(self, scene: RuntimeHarness) -> None:
        """Afterwards there is exactly one attempt, and it runs."""
        pod = self.make_pod("pod", Behaviour.OBEYS)
        await scene.call(scene.runtime.start_pod(pod))
        start = asyncio.ensure_future(
            scene.runtime.start_container(pod, only_container(pod), restart_count=0)
        )
        await asyncio.sleep(0)
        start.cancel()
        await asyncio.wait([start])
        container_id = await scene.start_container(pod, restart_count=0)
        attempts = (await scene.facts(pod)).containers
        assert [(attempt.id, attempt.state) for attempt in attempts] == [(container_id, _RUNNING)]

    @runtime_test
    async def test_a_stopped_pod_can_be_started_again(self, scene: RuntimeHarness) -> None:
        """It then has a ready sandbox, in which containers can be started."""
        pod, first = await scene.start(Behaviour.OBEYS)
        await scene.call(scene.runtime.stop_pod(pod.uid))
        await scene.call(scene.runtime.start_pod(pod))
        second = await scene.start_container(pod, restart_count=1)
        facts = await scene.facts(pod)
        assert facts.sandboxes[0].state is SandboxState.READY
        running = [attempt.id for attempt in facts.containers if attempt.state is _RUNNING]
        assert running == [second]
        assert second != first

    @runtime_test
    async def test_attempts_of_a_given_up_sandbox_are_not_active(
        self, scene: RuntimeHarness
    ) -> None:
        """Init containers have to run again in the new sandbox."""
        pod, first = await scene.start(Behaviour.OBEYS)
        assert await _activity(scene, pod) == {first: True}
        await scene.call(scene.runtime.stop_pod(pod.uid))
        await scene.call(scene.runtime.start_pod(pod))
        assert (await _activity(scene, pod)).get(first, False) is False, "its sandbox is stopped"
        second = await scene.start_container(pod, restart_count=1)
        activity = await _activity(scene, pod)
        assert (activity.get(first, False), activity[second]) == (False, True)


async def _activity(scene: RuntimeHarness, pod: Pod) -> dict[str, bool]:
    """Return the listed attempts, and whether they are active."""
    return {attempt.id: attempt.active for attempt in (await scene.facts(pod)).containers}
