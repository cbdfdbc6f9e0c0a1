"""The harness of the runtime suite: one runtime under test, in real or virtual time."""

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
"""The polling interval, in seconds."""
LONG_GRACE_SECONDS = 30.0
"""A grace period that a passing test never waits for, in seconds."""
PROMPT_SECONDS = 10.0
"""The limit for calls that should return at once, in seconds; generous for a loaded machine."""


class Behaviour(Enum):
    """What the container of a pod does."""

    OBEYS = "runs until it is asked to stop, then exits at once"
    EXITS = "exits by itself after about a second, with exit code 3"
    IGNORES = "runs until it is killed"
    FAILS = "cannot be executed"


class RuntimeUnderTest:
    """The properties of the runtime. Subclass `RuntimeSuite` and override these."""

    persists_records = True
    """Whether a reopened runtime knows the pods and attempts of the previous one."""
    reports_changes = True
    """Whether `changes()` reports changes, or the runtime relies on relisting."""

    def open_runtime(self) -> AbstractAsyncContextManager[Runtime]:
        """Open the runtime; called again within a test to check what was persisted."""
        raise NotImplementedError("override open_runtime: it opens the runtime under test")

    def make_pod(self, name: str, behaviour: Behaviour) -> Pod:
        """Return a pod with one container of this behaviour; each name gets its own UID."""
        raise NotImplementedError("override make_pod: it returns a pod with this behaviour")

    async def wait_until_ready(self, pod: Pod) -> None:
        """Wait until the container of a just started pod behaves as requested.

        For processes: a container that ignores signals needs a moment to install its handler.
        """

    def now(self) -> float:
        """Return the monotonic time in seconds."""
        return time.monotonic()

    async def wait(self, seconds: float) -> None:
        """Let this much time pass."""
        await asyncio.sleep(seconds)


class RuntimeHarness:
    """An opened runtime, and operations on its pods."""

    def __init__(self, test: RuntimeUnderTest, stack: AsyncExitStack) -> None:
        self._test = test
        self._stack = stack
        self.runtime: Runtime

    async def close(self) -> None:
        """Close the runtime, as an agent does when it stops."""
        await self._stack.aclose()

    async def open(self) -> None:
        """Close the runtime and open it again."""
        await self.close()
        self.runtime = await self._stack.enter_async_context(self._test.open_runtime())

    async def start(
        self, behaviour: Behaviour, name: str = "pod", *, restart_count: int = 0
    ) -> tuple[Pod, str]:
        """Start a pod and its container; return the pod and the container ID."""
        pod = self._test.make_pod(name, behaviour)
        await self.call(self.runtime.start_pod(pod))
        return pod, await self.start_container(pod, restart_count=restart_count)

    async def start_container(self, pod: Pod, *, restart_count: int) -> str:
        """Start the container of a pod; return the container ID."""
        start = self.runtime.start_container(pod, only_container(pod), restart_count=restart_count)
        container_id = await self.call(start)
        await self._test.wait_until_ready(pod)
        return container_id

    async def stop(self, pod: Pod, container_id: str, *, grace: float) -> float:
        """Stop a container; return how many seconds it took."""
        began = self._test.now()
        stop = self.runtime.stop_container(pod.uid, container_id, grace_seconds=grace)
        await self.call_within(PROMPT_SECONDS + grace, stop)
        return self._test.now() - began

    async def facts(self, pod: Pod) -> PodFacts:
        """Return the facts of a pod; empty if it is not listed."""
        listed = await self.call(self.runtime.list_pods())
        matches = [other.facts for other in listed if other.uid == pod.uid]
        assert len(matches) <= 1, f"the pod is listed {len(matches)} times"
        return matches[0] if matches else PodFacts()

    async def find(self, pod: Pod, container_id: str) -> ContainerFacts | None:
        """Return the facts of an attempt, None if it is not listed."""
        facts = await self.facts(pod)
        matches = [attempt for attempt in facts.containers if attempt.id == container_id]
        assert len(matches) <= 1, f"the attempt is listed {len(matches)} times"
        return matches[0] if matches else None

    async def wait_for_exit(self, pod: Pod, container_id: str) -> ContainerFacts:
        """Wait until the attempt has exited; return its facts."""
        until = self._test.now() + PROMPT_SECONDS
        while self._test.now() < until:
            container = await self.find(pod, container_id)
            assert container is not None, "a started attempt is no longer listed"
            if container.state is ContainerRunState.EXITED:
                return container
            await self._test.wait(POLL_SECONDS)
        raise AssertionError(
            f"the container has not exited within {PROMPT_SECONDS:g} s, or is not listed so"
        )

    async def call(self, call: Coroutine[Any, Any, T]) -> T:
        """Await a call that should return at once."""
        return await self.call_within(PROMPT_SECONDS, call)

    async def call_within(self, seconds: float, call: Coroutine[Any, Any, T]) -> T:
        """Await a call that may take `seconds`, while time passes."""
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(_call_result(call))
            await self.wait_for_task(seconds, task)
            if not task.done():
                task.cancel()
                raise AssertionError(f"{call} has not returned within {seconds:g} s")
        result, error = task.result()
        if error is not None:
            raise error
        assert result is not None
        return result[0]

    async def wait_for_task(self, seconds: float, task: "asyncio.Task[Any]") -> None:
        """Let time pass until a task is done, at most `seconds`."""
        # A task that needs no time completes without any.
        for _ in range(3):
            await asyncio.sleep(0)
        until = self._test.now() + seconds
        while not task.done() and self._test.now() < until:
            await self._test.wait(POLL_SECONDS)


def runtime_test(case: Callable[[Any, RuntimeHarness], Awaitable[None]]) -> Callable[[Any], None]:
    """Make a pytest test of a method that takes a harness."""

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
    """Return the only container of a pod of the suite."""
    (container,) = pod.spec.containers or ()
    return container


async def _call_result(call: Coroutine[Any, Any, T]) -> tuple[tuple[T] | None, Exception | None]:
    """Return the result or the error: a task group would wrap the error."""
    try:
        return (await call,), None
    except Exception as error:  # noqa: BLE001 - raised by the caller
        return None, error
