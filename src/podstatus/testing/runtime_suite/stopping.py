"""Conformance tests of stopping and removing: durations, and what remains."""

import asyncio

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.runtime_facts import ContainerRunState, SandboxState
from podstatus.testing.runtime_suite.scene import (
    LONG_GRACE_SECONDS,
    POLL_SECONDS,
    PROMPT_SECONDS,
    Behaviour,
    RuntimeHarness,
    RuntimeUnderTest,
    runtime_test,
)

_RUNNING, _EXITED = ContainerRunState.RUNNING, ContainerRunState.EXITED


class StoppingTests(RuntimeUnderTest):
    """The tests of stopping, as a part of `RuntimeSuite`."""

    @runtime_test
    async def test_a_container_that_obeys_is_not_waited_for(self, scene: RuntimeHarness) -> None:
        """The grace period is an upper bound."""
        pod, container_id = await scene.start(Behaviour.OBEYS)
        assert await scene.stop(pod, container_id, grace=LONG_GRACE_SECONDS) < PROMPT_SECONDS
        container = await scene.find(pod, container_id)
        assert container is not None, (
            "a container that was stopped stays listed until it is removed"
        )
        assert container.state is _EXITED
        assert container.exit_code != 137, "it was killed before the grace period was over"

    @runtime_test
    async def test_a_container_that_ignores_it_is_ended_after_the_grace(
        self, scene: RuntimeHarness
    ) -> None:
        """Not earlier, and it has exited when the stop returns."""
        pod, container_id = await scene.start(Behaviour.IGNORES)
        assert await scene.stop(pod, container_id, grace=1.0) >= 0.9, (
            "the grace period was cut short"
        )
        container = await scene.find(pod, container_id)
        assert container is not None
        assert (container.state, container.exit_code, container.reason) == (_EXITED, 137, "Error")

    @runtime_test
    async def test_a_shorter_grace_shortens_a_stop_under_way(self, scene: RuntimeHarness) -> None:
        """Both calls return when the container has exited."""
        pod, container_id = await scene.start(Behaviour.IGNORES)
        async with asyncio.TaskGroup() as tasks:
            first = tasks.create_task(
                scene.runtime.stop_container(
                    pod.uid, container_id, grace_seconds=LONG_GRACE_SECONDS
                )
            )
            await self.wait(POLL_SECONDS)
            assert not first.done(), "the stop returned before the container had exited"
            assert await scene.stop(pod, container_id, grace=0.5) < PROMPT_SECONDS
            await scene.wait_for_task(PROMPT_SECONDS, first)
            assert first.done(), "the first stop is still waiting"

    @runtime_test
    async def test_a_stop_that_was_cancelled_can_be_repeated(self, scene: RuntimeHarness) -> None:
        """The container has then exited, once."""
        pod, container_id = await scene.start(Behaviour.IGNORES)
        stop = asyncio.ensure_future(
            scene.runtime.stop_container(pod.uid, container_id, grace_seconds=LONG_GRACE_SECONDS)
        )
        await self.wait(POLL_SECONDS)
        stop.cancel()
        await asyncio.wait([stop])
        assert stop.cancelled(), "a cancelled call must raise CancelledError"
        assert await scene.stop(pod, container_id, grace=0.0) < PROMPT_SECONDS
        container = await scene.find(pod, container_id)
        assert container is not None
        assert container.state is _EXITED

    @runtime_test
    async def test_calls_about_different_pods_do_not_wait_for_each_other(
        self, scene: RuntimeHarness
    ) -> None:
        """A pod that is slow to stop does not delay others."""
        slow, container_id = await scene.start(Behaviour.IGNORES, "slow")
        stop = scene.runtime.stop_container(
            slow.uid, container_id, grace_seconds=LONG_GRACE_SECONDS
        )
        async with asyncio.TaskGroup() as tasks:
            stopping = tasks.create_task(stop)
            await scene.start(Behaviour.OBEYS, "other")
            assert not stopping.done()
            await scene.stop(slow, container_id, grace=0.0)

    @runtime_test
    async def test_stopping_and_removing_what_is_not_there_is_no_error(
        self, scene: RuntimeHarness
    ) -> None:
        """A repeated stop or removal succeeds, too."""
        pod, container_id = await scene.start(Behaviour.OBEYS)
        runtime, absent = scene.runtime, PodUID("uid-unknown")
        unknown = f"{runtime.name}://unknown"
        for uid, an_id in ((absent, unknown), (absent, container_id), (pod.uid, unknown)):
            await scene.call(runtime.stop_container(uid, an_id, grace_seconds=LONG_GRACE_SECONDS))
            await scene.call(runtime.remove_container(uid, an_id))
        container = await scene.find(pod, container_id)
        assert container is not None
        assert container.state is _RUNNING, "the container of another pod was stopped"
        for uid in (absent, pod.uid, pod.uid):
            await scene.call(runtime.stop_pod(uid))
            await scene.call(runtime.stop_container(uid, container_id, grace_seconds=1.0))
        for uid in (absent, pod.uid, pod.uid):
            await scene.call(runtime.remove_container(uid, container_id))
            await scene.call(runtime.remove_pod(uid))

    @runtime_test
    async def test_a_removed_attempt_is_forgotten(self, scene: RuntimeHarness) -> None:
        """Other attempts of the container stay listed."""
        pod, first = await scene.start(Behaviour.EXITS)
        await scene.wait_for_exit(pod, first)
        second = await scene.start_container(pod, restart_count=1)
        await scene.call(scene.runtime.remove_container(pod.uid, first))
        assert [attempt.id for attempt in (await scene.facts(pod)).containers] == [second]

    @runtime_test
    async def test_stopping_a_pod_ends_it_at_once_and_keeps_its_records(
        self, scene: RuntimeHarness
    ) -> None:
        """Containers are killed, and the sandbox is stopped."""
        pod, container_id = await scene.start(Behaviour.IGNORES)
        await scene.call(scene.runtime.stop_pod(pod.uid))
        facts = await scene.facts(pod)
        assert [attempt.id for attempt in facts.containers] == [container_id], "its exit is lost"
        assert facts.containers[0].state is _EXITED
        assert all(sandbox.state is SandboxState.NOT_READY for sandbox in facts.sandboxes)

    @runtime_test
    async def test_a_removed_pod_is_not_listed_and_others_are(self, scene: RuntimeHarness) -> None:
        """As soon as the removal returns."""
        pod, _ = await scene.start(Behaviour.OBEYS)
        other, container_id = await scene.start(Behaviour.OBEYS, "other")
        await scene.call(scene.runtime.stop_pod(pod.uid))
        await scene.call(scene.runtime.remove_pod(pod.uid))
        listed = await scene.call(scene.runtime.list_pods())
        assert [listing.uid for listing in listed] == [other.uid]
        assert not await scene.call(scene.runtime.list_pods(pod.uid))
        container = await scene.find(other, container_id)
        assert container is not None
        assert container.state is _RUNNING
