"""What is promised of lists, hints and records: what is told, to this agent and the next."""

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
    """The tests, as a part of `RuntimeSuite`."""

    @runtime_test
    async def test_an_exit_is_listed(self, scene: RuntimeHarness) -> None:
        """With its code, a reason, and when it was."""
        pod, container_id = await scene.start(Behaviour.EXITS)
        found = await scene.wait_for_exit(pod, container_id)
        assert (found.exit_code, found.reason) == (3, "Error")
        assert UNSET_TIME < found.started_at <= found.finished_at

    @runtime_test
    async def test_one_pod_is_listed_alone(self, scene: RuntimeHarness) -> None:
        """As it is in the list of all."""
        pod, _ = await scene.start(Behaviour.OBEYS)
        await scene.start(Behaviour.OBEYS, "other")
        listed = await scene.call(scene.runtime.list_pods())
        assert len(listed) == 2
        alone = await scene.call(scene.runtime.list_pods(pod.uid))
        assert list(alone) == [found for found in listed if found.uid == pod.uid]
        assert not await scene.call(scene.runtime.list_pods(PodUID("uid-nobody")))

    @runtime_test
    async def test_while_nothing_happens_the_list_stays_equal(self, scene: RuntimeHarness) -> None:
        """Whatever differs has a worker look at its pod; best are the very same objects."""
        await scene.start(Behaviour.OBEYS)
        before = list(await scene.call(scene.runtime.list_pods()))
        await self.wait(1.0)
        assert list(await scene.call(scene.runtime.list_pods())) == before

    @runtime_test
    async def test_who_asks_before_a_change_is_told_of_it(self, scene: RuntimeHarness) -> None:
        """By the time it is told the change is listed."""
        if not self.reports_changes:
            pytest.skip("it leaves all to the relisting")
        pod, container_id = await scene.start(Behaviour.EXITS)
        async with asyncio.TaskGroup() as tasks:
            told = tasks.create_task(_wait_for_end_change(scene.runtime, pod.uid, container_id))
            await scene.wait_for_task(PROMPT_SECONDS, told)
            done = told.done()
            told.cancel()
        assert done, "nobody was told that the container ended"

    @runtime_test
    async def test_changes_never_end(self, scene: RuntimeHarness) -> None:
        """Who has nothing to tell waits."""
        changes = scene.runtime.changes()
        waiting = asyncio.ensure_future(_next(changes))
        await self.wait(0.5)
        done = waiting.done()
        waiting.cancel()
        await asyncio.wait([waiting])
        assert not done, "there was nothing to tell"

    @runtime_test
    async def test_what_runs_outlives_the_agent(self, scene: RuntimeHarness) -> None:
        """The same attempt, and it can be stopped as if nothing had been."""
        self._need_records()
        pod, container_id = await scene.start(Behaviour.OBEYS)
        before = await scene.facts(pod)
        await scene.open()
        assert await scene.facts(pod) == before
        assert await scene.stop(pod, container_id, grace=LONG_GRACE_SECONDS) < PROMPT_SECONDS
        found = await scene.find(pod, container_id)
        assert found is not None
        assert found.state is _EXITED
        assert found.exit_code != 137, "it was made to end before it could"

    @runtime_test
    async def test_an_exit_that_no_agent_saw_is_listed_with_its_time(
        self, scene: RuntimeHarness
    ) -> None:
        """When it ended, not when that was noticed."""
        self._need_records()
        pod, container_id = await scene.start(Behaviour.EXITS)
        await scene.close()
        await self.wait(3.0)
        await scene.open()
        found = await scene.wait_for_exit(pod, container_id)
        assert (found.exit_code, found.reason) == (3, "Error")
        assert found.finished_at - found.started_at < 2 * _SECOND

    @runtime_test
    async def test_what_was_removed_stays_removed(self, scene: RuntimeHarness) -> None:
        """Also for the next agent."""
        self._need_records()
        pod, _ = await scene.start(Behaviour.OBEYS)
        await scene.call(scene.runtime.stop_pod(pod.uid))
        await scene.call(scene.runtime.remove_pod(pod.uid))
        await scene.open()
        assert not await scene.call(scene.runtime.list_pods())

    @runtime_test
    async def test_who_meters_knows_every_listed_pod(self, scene: RuntimeHarness) -> None:
        """And no other one."""
        if not isinstance(scene.runtime, PodStats):
            pytest.skip("it does not meter")
        await scene.start(Behaviour.OBEYS)
        listed = await scene.call(scene.runtime.list_pods())
        usage = await scene.call(_usage(scene.runtime))
        assert set(usage) == {found.uid for found in listed}

    @runtime_test
    async def test_who_meters_inside_knows_every_container_that_runs(
        self, scene: RuntimeHarness
    ) -> None:
        """By name, once its pod was metered; and none that has ended."""
        if not isinstance(scene.runtime, ContainerStats):
            pytest.skip("it does not meter containers")
        pod, _ = await scene.start(Behaviour.OBEYS)
        await scene.call(_usage(scene.runtime))
        names = {container.name for container in pod.spec.containers or ()}
        assert set(scene.runtime.container_usage()[pod.uid]) == names
        await scene.call(scene.runtime.stop_pod(pod.uid))
        await scene.call(_usage(scene.runtime))
        assert not scene.runtime.container_usage().get(pod.uid)

    def _need_records(self) -> None:
        if not self.persists_records:
            pytest.skip("its records do not outlive the agent")


async def _wait_for_end_change(runtime: Runtime, uid: PodUID, container_id: str) -> None:
    """Come back when a hint leads to the end of a container."""
    async for told in runtime.changes():
        listed = await runtime.list_pods(told)
        found = [attempt for pod in listed for attempt in pod.facts.containers]
        ends = [a.id for a in found if a.state is _EXITED]
        if told == uid and container_id in ends:
            return


async def _next(changes: AsyncIterator[PodUID]) -> PodUID:
    return await anext(changes)


async def _usage(runtime: PodStats) -> Mapping[PodUID, Usage]:
    return await runtime.usage()
