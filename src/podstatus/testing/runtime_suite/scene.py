"""One runtime under test, in real or in virtual time, and what the suite does with it."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from enum import Enum
from typing import Any, TypeVar

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState, PodFacts
from podstatus.runtime.port import Runtime

T = TypeVar("T")

POLL_SECONDS = 0.05
"""Seconds between two looks."""
LONG_GRACE_SECONDS = 30.0
"""Seconds that nobody wants to wait."""
PROMPT_SECONDS = 10.0
"""Seconds that something may take that should take no time: plenty on a loaded machine."""


class Behaviour(Enum):
    """What the container of a pod does."""

    OBEYS = "runs until it is asked to end, then ends at once"
    EXITS = "ends by itself after about a second, with exit code 3"
    IGNORES = "runs until it is made to end"
    FAILS = "cannot be executed"


class RuntimeUnderTest:
    """What the suite must be told. Subclass `RuntimeSuite` and override these."""

    persists_records = True
    """Whether a runtime that is opened again knows what the one before did."""
    reports_changes = True
    """Whether it gives hints, or leaves all to the relisting."""

    def open_runtime(self) -> AbstractAsyncContextManager[Runtime]:
        """The runtime. It is opened again in the same test to see what was kept."""
        raise NotImplementedError("say how the runtime is opened: override open_runtime")

    def make_pod(self, name: str, behaviour: Behaviour) -> Pod:
        """A pod with one container that behaves so; the name gives it a UID of its own."""
        raise NotImplementedError("say how pods behave in the runtime: override make_pod")

    async def wait_until_ready(self, pod: Pod) -> None:
        """Come back when the container of a pod, just started, is ready to behave.

        For processes: one that is to ignore a signal needs a moment to say so.
        """

    def now(self) -> float:
        """Seconds that have passed since some moment."""
        return time.monotonic()

    async def wait(self, seconds: float) -> None:
        """Let so much time pass."""
        await asyncio.sleep(seconds)


class RuntimeHarness:
    """An opened runtime, and pods in it."""

    def __init__(self, test: RuntimeUnderTest, stack: AsyncExitStack) -> None:
        self._test = test
        self._stack = stack
        self.runtime: Runtime

    async def close(self) -> None:
        """Let go of the runtime, as an agent does that ends."""
        await self._stack.aclose()

    async def open(self) -> None:
        """Open the runtime anew."""
        await self.close()
        self.runtime = await self._stack.enter_async_context(self._test.open_runtime())

    async def start(
        self, behaviour: Behaviour, name: str = "pod", *, restart_count: int = 0
    ) -> tuple[Pod, str]:
        """Start a pod and its container; the ID of the attempt."""
        pod = self._test.make_pod(name, behaviour)
        await self.call(self.runtime.start_pod(pod))
        return pod, await self.start_container(pod, restart_count=restart_count)

    async def start_container(self, pod: Pod, *, restart_count: int) -> str:
        """Start the container of a pod."""
        start = self.runtime.start_container(pod, only_container(pod), restart_count=restart_count)
        container_id = await self.call(start)
        await self._test.wait_until_ready(pod)
        return container_id

    async def stop(self, pod: Pod, container_id: str, *, grace: float) -> float:
        """Stop a container; how many seconds that took."""
        began = self._test.now()
        stop = self.runtime.stop_container(pod.uid, container_id, grace_seconds=grace)
        await self.call_within(PROMPT_SECONDS + grace, stop)
        return self._test.now() - began

    async def facts(self, pod: Pod) -> PodFacts:
        """What the runtime says about a pod now; nothing if it is not listed."""
        listed = await self.call(self.runtime.list_pods())
        found = [other.facts for other in listed if other.uid == pod.uid]
        assert len(found) <= 1, f"the pod is listed {len(found)} times"
        return found[0] if found else PodFacts()

    async def find(self, pod: Pod, container_id: str) -> ContainerFacts | None:
        """One attempt as it is listed."""
        facts = await self.facts(pod)
        found = [attempt for attempt in facts.containers if attempt.id == container_id]
        assert len(found) <= 1, f"the attempt is listed {len(found)} times"
        return found[0] if found else None

    async def wait_for_exit(self, pod: Pod, container_id: str) -> ContainerFacts:
        """The attempt as soon as it has ended."""
        until = self._test.now() + PROMPT_SECONDS
        while self._test.now() < until:
            found = await self.find(pod, container_id)
            assert found is not None, "an attempt that was made is not listed any more"
            if found.state is ContainerRunState.EXITED:
                return found
            await self._test.wait(POLL_SECONDS)
        raise AssertionError(
            f"a container has not ended within {PROMPT_SECONDS:g} s, or nobody says so"
        )

    async def call(self, call: Coroutine[Any, Any, T]) -> T:
        """What a call comes to that should take no time."""
        return await self.call_within(PROMPT_SECONDS, call)

    async def call_within(self, seconds: float, call: Coroutine[Any, Any, T]) -> T:
        """What a call comes to, with time passing meanwhile; it may take so long."""
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(_call_result(call))
            await self.wait_for_task(seconds, task)
            if not task.done():
                task.cancel()
                raise AssertionError(f"{call} has not come back within {seconds:g} s")
        result, error = task.result()
        if error is not None:
            raise error
        assert result is not None
        return result[0]

    async def wait_for_task(self, seconds: float, task: "asyncio.Task[Any]") -> None:
        """Let time pass until a task is done, at most so much."""
        # What needs no time at all is done without any.
        for _ in range(3):
            await asyncio.sleep(0)
        until = self._test.now() + seconds
        while not task.done() and self._test.now() < until:
            await self._test.wait(POLL_SECONDS)


def runtime_test(case: Callable[[Any, RuntimeHarness], Awaitable[None]]) -> Callable[[Any], None]:
    """A test that pytest can run, of one that is played in a scene."""

    def play(self: RuntimeUnderTest) -> None:
        asyncio.run(_run_case(self, case))

    play.__name__, play.__doc__ = case.__name__, case.__doc__
    return play


async def _run_case(
    suite: RuntimeUnderTest, case: Callable[[Any, RuntimeHarness], Awaitable[None]]
) -> None:
    async with AsyncExitStack() as stack:
        scene = RuntimeHarness(suite, stack)
        await scene.open()
        await case(suite, scene)


def only_container(pod: Pod) -> Container:
    """The container of a pod of the suite."""
    (container,) = pod.spec.containers or ()
    return container


async def _call_result(call: Coroutine[Any, Any, T]) -> tuple[tuple[T] | None, Exception | None]:
    """What a call returns or raises: a task group would wrap the error."""
    try:
        return (await call,), None
    except Exception as error:  # noqa: BLE001 - handed on
        return None, error
