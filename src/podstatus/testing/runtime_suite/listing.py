"""Conformance tests of listing, change notifications, persisted records and stats."""

import asyncio
from collections.abc import AsyncIterator, Mapping

import pytest

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.runtime_facts import ContainerRunState
from podstatus.kube.objects.usage import Usage
from podstatus.kube.scalars.time import UNSET_TIME
from podstatus.runtime.port import ContainerStats, PodStats, Runtime
from podstatus.testing.runtime_suite.scene import (
    LONG_GRACE_SECONDS,
    PROMPT_SECONDS,
    Behaviour,
    RuntimeHarness,
    RuntimeUnderTest,
    runtime_test,
)

_RUNNING, _EXITED = ContainerRunState.RUNNING, ContainerRunState.EXITED
_SECOND = 1_000_000_000


class ListingTests(RuntimeUnderTest):
    """The tests of listing, as a part of `RuntimeSuite`."""

    @runtime_test
    async def test_an_exit_is_listed(self, scene: RuntimeHarness) -> None:
        """With exit code, reason and times."""
        pod, container_id = await scene.start(Behaviour.EXITS)
        container = await scene.wait_for_exit(pod, container_id)
        assert (container.exit_code, container.reason) == (3, "Error")
        assert UNSET_TIME < container.started_at <= container.finished_at

    @runtime_test
    async def test_one_pod_is_listed_alone(self, scene: RuntimeHarness) -> None:
        """Listing one pod returns the same entry as listing all."""
        pod, _ = await scene.start(Behaviour.OBEYS)
        await scene.start(Behaviour.OBEYS, "other")
        listed = await scene.call(scene.runtime.list_pods())
        assert len(listed) == 2
        alone = await scene.call(scene.runtime.list_pods(pod.uid))
        assert list(alone) == [listing for listing in listed if listing.uid == pod.uid]
        assert not await scene.call(scene.runtime.list_pods(PodUID("uid-unknown")))

    @runtime_test
    async def test_while_nothing_happens_the_list_stays_equal(self, scene: RuntimeHarness) -> None:
        """Every difference triggers a sync of the pod; ideally the same objects are returned."""
        await scene.start(Behaviour.OBEYS)
        before = list(await scene.call(scene.runtime.list_pods()))
        await self.wait(1.0)
        assert list(await scene.call(scene.runtime.list_pods())) == before

    @runtime_test
    async def test_a_change_is_reported_to_a_listener(self, scene: RuntimeHarness) -> None:
        """When the change is reported, it is already listed."""
        if not self.reports_changes:
            pytest.skip("the runtime reports no changes")
        pod, container_id = await scene.start(Behaviour.EXITS)
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(_wait_for_end_change(scene.runtime, pod.uid, container_id))
            await scene.wait_for_task(PROMPT_SECONDS, watching)
            done = watching.done()
            watching.cancel()
        assert done, "the exit of the container was not reported"

    @runtime_test
    async def test_changes_never_end(self, scene: RuntimeHarness) -> None:
        """Without changes the iterator waits."""
        changes = scene.runtime.changes()
        waiting = asyncio.ensure_future(_next(changes))
        await self.wait(0.5)
        done = waiting.done()
        waiting.cancel()
        await asyncio.wait([waiting])
        assert not done, "changes() ended or reported something without a change"

    @runtime_test
    async def test_what_runs_outlives_the_agent(self, scene: RuntimeHarness) -> None:
        """The attempt is the same, and can be stopped as usual."""
        self._need_records()
        pod, container_id = await scene.start(Behaviour.OBEYS)
        before = await scene.facts(pod)
        await scene.open()
        assert await scene.facts(pod) == before
        assert await scene.stop(pod, container_id, grace=LONG_GRACE_SECONDS) < PROMPT_SECONDS
        container = await scene.find(pod, container_id)
        assert container is not None
        assert container.state is _EXITED
        assert container.exit_code != 137, "it was killed before the grace period was over"

    @runtime_test
    async def test_an_exit_that_no_agent_saw_is_listed_with_its_time(
        self, scene: RuntimeHarness
    ) -> None:
        """The time of the exit, not of its detection."""
        self._need_records()
        pod, container_id = await scene.start(Behaviour.EXITS)
        await scene.close()
        await self.wait(3.0)
        await scene.open()
        container = await scene.wait_for_exit(pod, container_id)
        assert (container.exit_code, container.reason) == (3, "Error")
        assert container.finished_at - container.started_at < 2 * _SECOND

    @runtime_test
    async def test_what_was_removed_stays_removed(self, scene: RuntimeHarness) -> None:
        """Also after a restart of the agent."""
        self._need_records()
        pod, _ = await scene.start(Behaviour.OBEYS)
        await scene.call(scene.runtime.stop_pod(pod.uid))
        await scene.call(scene.runtime.remove_pod(pod.uid))
        await scene.open()
        assert not await scene.call(scene.runtime.list_pods())

    @runtime_test
    async def test_usage_covers_every_listed_pod(self, scene: RuntimeHarness) -> None:
        """The usage has exactly the listed pods."""
        if not isinstance(scene.runtime, PodStats):
            pytest.skip("the runtime has no pod stats")
        await scene.start(Behaviour.OBEYS)
        listed = await scene.call(scene.runtime.list_pods())
        usage = await scene.call(_usage(scene.runtime))
        assert set(usage) == {pod.uid for pod in listed}

    @runtime_test
    async def test_container_usage_covers_every_running_container(
        self, scene: RuntimeHarness
    ) -> None:
        """By name, after a call of `usage`; exited containers are left out."""
        if not isinstance(scene.runtime, ContainerStats):
            pytest.skip("the runtime has no container stats")
        pod, _ = await scene.start(Behaviour.OBEYS)
        await scene.call(_usage(scene.runtime))
        names = {container.name for container in pod.spec.containers or ()}
        assert set(scene.runtime.container_usage()[pod.uid]) == names
        await scene.call(scene.runtime.stop_pod(pod.uid))
        await scene.call(_usage(scene.runtime))
        assert not scene.runtime.container_usage().get(pod.uid)

    def _need_records(self) -> None:
        if not self.persists_records:
            pytest.skip("the runtime does not persist its records")


async def _wait_for_end_change(runtime: Runtime, uid: PodUID, container_id: str) -> None:
    """Return when a reported change shows the exit of a container."""
    async for changed in runtime.changes():
        listed = await runtime.list_pods(changed)
        attempts = [attempt for pod in listed for attempt in pod.facts.containers]
        exited = [attempt.id for attempt in attempts if attempt.state is _EXITED]
        if changed == uid and container_id in exited:
            return


async def _next(changes: AsyncIterator[PodUID]) -> PodUID:
    return await anext(changes)


async def _usage(runtime: PodStats) -> Mapping[PodUID, Usage]:
    return await runtime.usage()
