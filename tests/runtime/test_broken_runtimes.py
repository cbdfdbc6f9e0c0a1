"""Runtimes that break one promise each: the suite must detect every one of them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec import structs

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.runtime_facts import (
    ContainerFacts,
    ContainerRunState,
    ResourceFacts,
    SandboxState,
)
from podstatus.kube.scalars.time import Time
from podstatus.runtime.port import CannotResizeError, CannotStartError, Runtime, RuntimePod
from podstatus.runtime.simulated import SimulatedRuntime
from podstatus.testing.clock import FakeClock
from podstatus.testing.runtime_suite import RuntimeSuite
from tests.runtime.simulated.suite_runtime import Simulated


class Honest(SimulatedRuntime):
    def __init__(self, clock: FakeClock, folder: Path) -> None:
        super().__init__(clock, folder=folder)
        self.clock = clock
        self.folder = folder


def relisted(
    pods: Sequence[RuntimePod], change: Callable[[ContainerFacts], ContainerFacts | None]
) -> Sequence[RuntimePod]:
    """Return the pods with other containers."""
    lied = []
    for pod in pods:
        containers = [new for old in pod.facts.containers if (new := change(old)) is not None]
        facts = structs.replace(pod.facts, containers=tuple(containers))
        lied.append(structs.replace(pod, facts=facts))
    return lied


class ForgetsOnReturn(Honest):
    """Lists new containers one second late."""

    async def list_pods(self, uid: PodUID | None = None) -> Sequence[RuntimePod]:
        horizon = Time.from_unix_nanos(self.clock.now() - 1_000_000_000)
        pods = await super().list_pods(uid)
        return relisted(pods, lambda c: c if c.created_at < horizon else None)


class StartsTwice(Honest):
    """Each start creates an attempt, even a repeated one."""

    async def start_container(self, pod: Pod, container: Container, *, restart_count: int) -> str:
        record = self._state.record(pod.uid)
        assert record is not None
        numbers = [attempt.restart_count for attempt in record.attempts]
        count = max([*(number + 1 for number in numbers), restart_count])
        return await super().start_container(pod, container, restart_count=count)


class ForgetsTheExitBefore(Honest):
    """Lists only the newest attempt of a container."""

    async def list_pods(self, uid: PodUID | None = None) -> Sequence[RuntimePod]:
        pods = await super().list_pods(uid)
        newest = {(p.uid, c.name): c.id for p in pods for c in reversed(p.facts.containers)}
        return relisted(pods, lambda c: c if c.id in newest.values() else None)


class ForgetsExitCodes(Honest):
    """Reports exit code 0 for every exit."""

    async def list_pods(self, uid: PodUID | None = None) -> Sequence[RuntimePod]:
        return relisted(
            await super().list_pods(uid),
            lambda c: structs.replace(c, exit_code=0, reason="Completed" if c.reason else ""),
        )


class NeverSeesAnExit(Honest):
    """Lists every started container as running."""

    async def list_pods(self, uid: PodUID | None = None) -> Sequence[RuntimePod]:
        return relisted(
            await super().list_pods(uid),
            lambda c: structs.replace(c, state=ContainerRunState.RUNNING),
        )


class StopsInTheBackground(Honest):
    """Returns before the container has ended."""

    async def stop_container(self, uid: PodUID, container_id: str, *, grace_seconds: float) -> None:
        now = self.clock.now()
        self._request_stop(uid, container_id, stop_at=now, kill_at=now + round(grace_seconds * 1e9))


class KnowsNoGrace(Honest):
    """Kills containers without a grace period."""

    async def stop_container(self, uid: PodUID, container_id: str, *, grace_seconds: float) -> None:
        await super().stop_container(uid, container_id, grace_seconds=0.0)


class WaitsForTheWholeGrace(Honest):
    """Returns after the full grace period in any case."""

    async def stop_container(self, uid: PodUID, container_id: str, *, grace_seconds: float) -> None:
        await super().stop_container(uid, container_id, grace_seconds=grace_seconds)
        await self.clock.wait(grace_seconds)


class KeepsTheFirstGrace(Honest):
    """Ignores a shorter grace period of a second stop."""

    def _request_stop(
        self, uid: PodUID, container_id: str, *, stop_at: int | None, kill_at: int
    ) -> None:
        record = self._state.record(uid)
        attempt = record.find(container_id) if record else None
        if attempt is None or attempt.kill_at is None:
            super()._request_stop(uid, container_id, stop_at=stop_at, kill_at=kill_at)


class DoesOneThingAtATime(Honest):
    """Serialises calls of different pods."""

    def __init__(self, clock: FakeClock, folder: Path) -> None:
        super().__init__(clock, folder)
        self.lock = asyncio.Lock()

    async def stop_container(self, uid: PodUID, container_id: str, *, grace_seconds: float) -> None:
        async with self.lock:
            await super().stop_container(uid, container_id, grace_seconds=grace_seconds)

    async def start_pod(self, pod: Pod) -> None:
        async with self.lock:
            await super().start_pod(pod)


class KnowsOnlyItsOwn(Honest):
    """Raises for pods and containers that do not exist."""

    async def remove_container(self, uid: PodUID, container_id: str) -> None:
        record = self._state.record(uid)
        if record is None or record.find(container_id) is None:
            raise KeyError(container_id)
        await super().remove_container(uid, container_id)


class ForgetsWithTheStop(Honest):
    """Removes the records of a pod when it is stopped."""

    async def stop_pod(self, uid: PodUID) -> None:
        await super().stop_pod(uid)
        self._state.remove(uid)


class LeavesTheSandbox(Honest):
    """Lists the sandbox of a stopped pod as ready."""

    async def list_pods(self, uid: PodUID | None = None) -> Sequence[RuntimePod]:
        pods = await super().list_pods(uid)
        ready = [
            tuple(structs.replace(s, state=SandboxState.READY) for s in pod.facts.sandboxes)
            for pod in pods
        ]
        return [
            structs.replace(pod, facts=structs.replace(pod.facts, sandboxes=sandboxes))
            for pod, sandboxes in zip(pods, ready, strict=True)
        ]


class TakesOldAttemptsForNew(Honest):
    """Lists attempts of older sandboxes as active."""

    async def list_pods(self, uid: PodUID | None = None) -> Sequence[RuntimePod]:
        return relisted(await super().list_pods(uid), lambda c: structs.replace(c, active=True))


class RemovesLater(Honest):
    """Lists a pod after its removal."""

    async def remove_pod(self, uid: PodUID) -> None:
        await self.stop_pod(uid)


class ListsAllForOne(Honest):
    """Ignores the UID of a list request."""

    async def list_pods(self, uid: PodUID | None = None) -> Sequence[RuntimePod]:
        return await super().list_pods()


class IsNeverTheSame(Honest):
    """Returns different objects at each list."""

    async def list_pods(self, uid: PodUID | None = None) -> Sequence[RuntimePod]:
        now = Time.from_unix_nanos(self.clock.now())
        return relisted(await super().list_pods(uid), lambda c: structs.replace(c, started_at=now))


class TellsNothing(Honest):
    """Promises changes and yields none."""

    async def changes(self) -> AsyncIterator[PodUID]:
        await asyncio.Event().wait()
        yield PodUID("")


class EndsItsChanges(Honest):
    """Ends its stream of changes."""

    async def changes(self) -> AsyncIterator[PodUID]:
        for uid in list[PodUID]():
            yield uid


class RunsWhatCannotRun(Honest):
    """Does not report a failed start."""

    async def start_container(self, pod: Pod, container: Container, *, restart_count: int) -> str:
        try:
            return await super().start_container(pod, container, restart_count=restart_count)
        except CannotStartError:
            return ""


class SwallowsItsCancellation(Honest):
    """Swallows the cancellation of a call."""

    async def stop_container(self, uid: PodUID, container_id: str, *, grace_seconds: float) -> None:
        try:
            await super().stop_container(uid, container_id, grace_seconds=grace_seconds)
        except asyncio.CancelledError:
            return


class ForgetsWithTheAgent(Honest):
    """Claims to persist its records, but keeps them in memory."""

    def __init__(self, clock: FakeClock, folder: Path) -> None:
        super().__init__(clock, folder / str(clock.now()) / str(id(self)))


class DatesExitsWhenItSeesThem(Honest):
    """Sets the finish time of an exit to when it was noticed."""

    def __init__(self, clock: FakeClock, folder: Path) -> None:
        super().__init__(clock, folder)
        self.opened = Time.from_unix_nanos(clock.now())

    async def list_pods(self, uid: PodUID | None = None) -> Sequence[RuntimePod]:
        return relisted(
            await super().list_pods(uid),
            lambda c: structs.replace(c, finished_at=max(c.finished_at, self.opened)),
        )


class ListsWhatItStartedWith(Honest):
    """Lists the old resources after a resize."""

    async def resize_pod(self, pod: Pod, containers: Mapping[str, str]) -> None:
        return


class RestartsToResize(Honest):
    """Resizes by starting another attempt."""

    async def resize_pod(self, pod: Pod, containers: Mapping[str, str]) -> None:
        for container_id in containers.values():
            await self.stop_container(pod.uid, container_id, grace_seconds=1)
        await super().resize_pod(pod, containers)


class ResizesAllThatRuns(Honest):
    """Resizes all running containers instead of the named ones."""

    async def resize_pod(self, pod: Pod, containers: Mapping[str, str]) -> None:
        listed = await self.list_pods(pod.uid)
        ids = {c.name: c.id for other in listed for c in other.facts.containers}
        await super().resize_pod(pod, ids)


class InsistsOnRunning(Honest):
    """Fails to resize a container that has ended."""

    async def resize_pod(self, pod: Pod, containers: Mapping[str, str]) -> None:
        listed = await self.list_pods(pod.uid)
        states = [c.state for other in listed for c in other.facts.containers]
        if ContainerRunState.EXITED in states:
            raise CannotResizeError("it has ended")
        await super().resize_pod(pod, containers)


class KeepsItsResizesToItself(Honest):
    """Does not persist resizes for the next agent."""

    async def resize_pod(self, pod: Pod, containers: Mapping[str, str]) -> None:
        written = {file: file.read_bytes() for file in self.folder.glob("*.json")}
        await super().resize_pod(pod, containers)
        for file, text in written.items():
            file.write_bytes(text)


class SaysNothingOfMemory(Honest):
    """Omits the memory request, which no cgroup has."""

    async def list_pods(self, uid: PodUID | None = None) -> Sequence[RuntimePod]:
        return relisted(await super().list_pods(uid), without_memory_request)


def without_memory_request(container: ContainerFacts) -> ContainerFacts:
    facts = container.resources or ResourceFacts()
    return structs.replace(container, resources=structs.replace(facts, memory_request=None))


LIES: dict[type[Honest], str] = {
    ForgetsOnReturn: "test_a_started_container_is_listed_as_running",
    StartsTwice: "test_a_start_that_is_repeated_finds_the_attempt_that_was_made",
    ForgetsTheExitBefore: "test_another_attempt_is_listed_before_the_one_that_ended",
    ForgetsExitCodes: "test_an_exit_is_listed",
    NeverSeesAnExit: "test_a_container_that_obeys_is_not_waited_for",
    StopsInTheBackground: "test_a_container_that_ignores_it_is_ended_after_the_grace",
    KnowsNoGrace: "test_a_container_that_ignores_it_is_ended_after_the_grace",
    WaitsForTheWholeGrace: "test_a_container_that_obeys_is_not_waited_for",
    KeepsTheFirstGrace: "test_a_shorter_grace_shortens_a_stop_under_way",
    DoesOneThingAtATime: "test_calls_about_different_pods_do_not_wait_for_each_other",
    KnowsOnlyItsOwn: "test_stopping_and_removing_what_is_not_there_is_no_error",
    ForgetsWithTheStop: "test_stopping_a_pod_ends_it_at_once_and_keeps_its_records",
    LeavesTheSandbox: "test_stopping_a_pod_ends_it_at_once_and_keeps_its_records",
    TakesOldAttemptsForNew: "test_attempts_of_a_given_up_sandbox_are_not_active",
    RemovesLater: "test_a_removed_pod_is_not_listed_and_others_are",
    ListsAllForOne: "test_one_pod_is_listed_alone",
    IsNeverTheSame: "test_while_nothing_happens_the_list_stays_equal",
    TellsNothing: "test_a_change_is_reported_to_a_listener",
    EndsItsChanges: "test_changes_never_end",
    RunsWhatCannotRun: "test_what_cannot_be_executed_says_why",
    SwallowsItsCancellation: "test_a_stop_that_was_cancelled_can_be_repeated",
    ForgetsWithTheAgent: "test_what_runs_outlives_the_agent",
    ListsWhatItStartedWith: "test_a_running_container_is_given_other_resources",
    RestartsToResize: "test_a_running_container_is_given_other_resources",
    ResizesAllThatRuns: "test_a_container_that_is_not_named_keeps_what_it_has",
    InsistsOnRunning: "test_a_container_that_has_ended_is_no_reason_to_fail",
    KeepsItsResizesToItself: "test_the_next_agent_knows_what_was_resized",
    SaysNothingOfMemory: "test_the_resources_of_a_started_container_are_listed",
    DatesExitsWhenItSeesThem: "test_an_exit_that_no_agent_saw_is_listed_with_its_time",
}


_TOLD = (AssertionError, CannotResizeError, ExceptionGroup, KeyError, pytest.fail.Exception)


def suite_for(kind: type[Honest], folder: Path) -> RuntimeSuite:
    class Suite(Simulated):
        @asynccontextmanager
        async def open_runtime(self) -> AsyncIterator[Runtime]:
            yield kind(self.clock, self.folder)

    suite = Suite()
    suite.prepare(folder)
    return suite


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
def test_the_suite_tells_a_broken_promise(lie: type[Honest], tmp_path: Path) -> None:
    test = getattr(suite_for(lie, tmp_path), LIES[lie])
    with pytest.raises(_TOLD):
        test()


@pytest.mark.parametrize("test", sorted(set(LIES.values())))
def test_the_suite_believes_an_honest_runtime(test: str, tmp_path: Path) -> None:
    getattr(suite_for(Honest, tmp_path), test)()
