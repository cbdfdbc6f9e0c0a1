"""A whole node in virtual time: all that looks after pods, wired as the agent wires it.

    async with NodeInMemory() as node:
        node.create(a_pod("p", "run=2s, exit=1"))
        await node.passes(30)
        assert node.looks("p") == "Running a:CrashLoopBackOff(1)"

The API server and the runtime are around it and stay when the agent is restarted.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from msgspec import structs

from podstatus.checkpoint.allocation_checkpoint import FileState, MemoryState
from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod import Pod
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.scalars.time import Time
from podstatus.probes.workers import CheckFunction
from podstatus.runtime.simulated.model.script import POD_ANNOTATION
from podstatus.status.ports import Outbox
from podstatus.testing.builders import make_pod
from podstatus.testing.clock import FakeClock
from podstatus.workers.dependencies import WorkerPolicy
from tests.support.agent_in_memory import AgentInMemory, AgentWorld, EvictionSetup
from tests.support.world_in_memory import (
    ListeningRecorder,
    RecordedEvent,
    TroubledApi,
    TroubledRuntime,
)

NAMESPACE = "ns"


class _AtOnce(ThreadPoolExecutor):
    """Does at once what others give to a thread: a thread knows nothing of virtual time."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - it comes out of the future
            done.set_exception(error)
        return done


class NodeInMemory:
    """The world and the agent in it."""

    def __init__(
        self,
        *,
        policy: WorkerPolicy | None = None,
        runtime_folder: Path | None = None,
        state_folder: Path | None = None,
        relist: float = 1.0,
        chance: float = 0.0,
        rounds: int = 50,
        check: CheckFunction | None = None,
        outbox: Outbox | None = None,
    ) -> None:
        self.eviction: EvictionSetup | None = None
        """For the next agent."""
        self._check = check
        self.clock = FakeClock(rounds=rounds)
        self._began = self.clock.now()
        self.api = TroubledApi(self.clock, self._happened)
        self._runtime_folder = runtime_folder
        self._state_folder = state_folder
        self._state = MemoryState()
        self.runtime = TroubledRuntime(self.clock, runtime_folder)
        self.recorder = ListeningRecorder(self.clock)
        self._policy = policy or WorkerPolicy()
        self.delivers: Collection[str] = ("api", "file")
        """The sources that deliver when the agent starts."""
        self._relist = relist
        self._chance = chance
        self._outbox = outbox
        self.manifests: tuple[Pod, ...] = ()
        self.agent = self._new_agent()
        self._running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        asyncio.get_running_loop().set_default_executor(_AtOnce())
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    # The agent

    async def start(self) -> None:
        """Start the agent: it looks at the runtime first, and then at its sources."""
        self.agent = self._new_agent()
        await self.agent.view.relist_once()
        self._running = asyncio.create_task(self.agent.run())
        await self.passes(0)
        for source in self.delivers:
            self.deliver(source)
        await self.passes(0)

    async def stop(self) -> None:
        """End the agent; its containers run on."""
        running, self._running = self._running, None
        if running is not None:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            assert running.cancelled(), running.exception()
        assert self.agent.broken == []

    async def restart(self, *, after: float = 0) -> None:
        """End the agent, and start another one so many seconds later."""
        await self.stop()
        await self.passes(after)
        if self._runtime_folder is not None:
            self.runtime = TroubledRuntime(self.clock, self._runtime_folder)
        await self.start()

    def _new_agent(self) -> AgentInMemory:
        return AgentInMemory(
            AgentWorld(
                clock=self.clock,
                api=self.api,
                runtime=self.runtime,
                recorder=self.recorder,
                state=self._state if self._state_folder is None else FileState(self._state_folder),
                outbox=self._outbox,
                eviction=self.eviction,
            ),
            policy=self._policy,
            relist=self._relist,
            chance=self._chance,
            check=self._check,
        )

    # What others do

    def create(self, pod: Pod) -> None:
        """Somebody creates a pod."""
        self.api.put(pod)

    def delete(self, name: str, *, grace: int = 30) -> None:
        """Somebody deletes a pod; it stays until the node has ended it."""
        self.api.request_deletion(NAMESPACE, name, at=str(self.now), grace=grace)

    def force_delete(self, name: str) -> None:
        """Somebody takes a pod away at once."""
        self.api.remove(NAMESPACE, name)

    def write_manifests(self, *pods: Pod) -> None:
        """Somebody changes the folder of static pods."""
        self.manifests = pods
        self.deliver("file")

    def deliver(self, source: str) -> None:
        """A source says all that it wants."""
        if source == "file":
            self.agent.mux.deliver("file", self.manifests)
        elif not self.api.is_away:
            self.agent.mux.deliver("api", self.api.pods())

    def server_is_away(self) -> None:
        """The API server does not answer any more, and its watch is silent."""
        self.api.is_away = True

    def server_is_back(self) -> None:
        """The API server answers again, and is listed anew."""
        self.api.is_away = False
        if self._running is not None:
            self.deliver("api")

    async def passes(self, seconds: float) -> None:
        """Time passes."""
        await self.clock.advance(seconds)

    # What is to be seen

    @property
    def now(self) -> Time:
        """The time."""
        return Time.from_unix_nanos(self.clock.now())

    def pod(self, name: str) -> Pod | None:
        """The object of a pod."""
        return self.api.pod(NAMESPACE, name)

    def looks(self, name: str) -> str:
        """What the API server shows of a pod."""
        return self.api.shown[name][-1][1]

    def shown(self, name: str) -> list[str]:
        """All it has shown of a pod, in order."""
        return [looks for _, looks in self.api.shown[name]]

    def shown_at(self, name: str) -> list[tuple[float, str]]:
        """The same with the second of each, counted from the start of the node."""
        return [(self._since(at), looks) for at, looks in self.api.shown[name]]

    def events(self, pod: str, *reasons: str) -> list[str]:
        """The events about a pod and its containers, as in `Killing: Stopping container a`."""
        return [
            f"{event.reason}: {event.message}"
            for event in self.recorder.events
            if event.pod == pod and (not reasons or event.reason in reasons)
        ]

    def event_seconds(self, pod: str, reason: str) -> list[float]:
        """When such events were recorded, in seconds from the start of the node."""

        def is_meant(event: RecordedEvent) -> bool:
            return event.pod == pod and event.reason == reason

        return [self._since(event.at) for event in self.recorder.events if is_meant(event)]

    def calls(self, *verbs: str) -> list[str]:
        """What the runtime was asked to do."""
        return [call for call in self.runtime.calls if not verbs or call.split()[0] in verbs]

    def _since(self, at: float) -> float:
        return round(at - self._began / 1e9, 3)

    def _happened(self, changed: Pod | None, removed: Pod | None) -> None:
        """The watch tells of it a moment later, if it works."""
        if self._running is None or self.api.is_away:
            return
        mux, loop = self.agent.mux, asyncio.get_running_loop()
        if changed is not None:
            loop.call_soon(mux.update, "api", changed)
        if removed is not None:
            loop.call_soon(mux.remove, "api", removed)


def a_pod(
    name: str = "p",
    script: str | Mapping[str, str] = "",
    *,
    containers: Sequence[str] = ("a",),
    init: Sequence[str] = (),
    sidecars: Sequence[str] = (),
    policy: str = "Always",
    grace: int = 30,
    uid: str = "",
) -> Pod:
    """A pod whose containers do what the script says, or the scripts by container."""
    scripts = {} if isinstance(script, str) else script
    annotations = {f"simulate.podstatus.dev/{key}": text for key, text in scripts.items()}
    if script and isinstance(script, str):
        annotations[POD_ANNOTATION] = script
    pod = make_pod(
        name,
        namespace=NAMESPACE,
        uid=uid,
        containers=containers,
        init_containers=init,
        sidecars=sidecars,
        restart_policy=policy,
        annotations=annotations,
    )
    spec = structs.replace(pod.spec, termination_grace_period_seconds=grace)
    return structs.replace(pod, spec=spec)


def with_deadline(pod: Pod, seconds: int | None) -> Pod:
    """The pod with an active deadline."""
    spec = structs.replace(pod.spec, active_deadline_seconds=seconds)
    return structs.replace(pod, spec=spec)


def asking(pod: Pod, cpu: str) -> Pod:
    """The pod with a request for so much of the processors, at each container."""
    resources = ResourceRequirements(requests={"cpu": Quantity.parse(cpu)})
    containers = tuple(structs.replace(c, resources=resources) for c in pod.spec.containers or ())
    return structs.replace(pod, spec=structs.replace(pod.spec, containers=containers))
