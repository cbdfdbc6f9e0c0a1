"""What is around the agent of a node in virtual time: an API server, a runtime, who hears events.

All of them can be in trouble, and remember what was asked of them.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random

import msgspec

from podstatus.base.clock import Clock
from podstatus.events.recorder import EventRecorder
from podstatus.kube.api_errors import UnavailableError
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.event import ObjectReference
from podstatus.kube.objects.pod import ApiUID, Pod, PodUID
from podstatus.kube.objects.pod_status import ContainerState, ContainerStatus
from podstatus.kube.objects.runtime_facts import ContainerFacts, ContainerRunState
from podstatus.runtime.port import RuntimeDownError, RuntimePod
from podstatus.runtime.simulated.simulated_runtime import SimulatedRuntime
from podstatus.testing.fakes import FakeEventSink
from podstatus.testing.in_memory_pod_api import InMemoryPodApi

_SECOND = 1_000_000_000


class RecordedEvent(msgspec.Struct, frozen=True):
    """An event as it was recorded."""

    at: float
    """Seconds of the clock."""
    about: str
    """The field of the container it is about, or the name of the pod."""
    reason: str
    message: str
    pod: str
    annotations: Mapping[str, str] = {}


class ListeningRecorder(EventRecorder):
    """Stores events instead of sending them."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(FakeEventSink(), host="node", clock=clock)
        self._time = clock
        self.events: list[RecordedEvent] = []

    def normal(
        self,
        about: ObjectReference,
        reason: str,
        message: str,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        self.events.append(
            RecordedEvent(
                self._time.now() / _SECOND,
                about.field_path or about.name,
                reason,
                message,
                about.name,
                annotations or {},
            )
        )

    warn = normal


class TroubledApi(InMemoryPodApi):
    """An API server that is away at times; it remembers what it has shown of each pod."""

    def __init__(self, clock: Clock, on_change: Callable[[Pod | None, Pod | None], None]) -> None:
        self._clock = clock
        self.on_change = on_change
        """RecordedEvent of what there is now, or of what is gone."""
        self.is_away = False
        self.before_delete: Callable[[Pod], None] = lambda _: None
        self.shown: dict[str, list[tuple[float, str]]] = {}
        """By name: when its status looked like this at first."""
        super().__init__(watcher=self)

    def update_pod(self, pod: Pod) -> None:
        """A pod is new, or has changed."""
        self._show(pod.name, brief(pod))
        self.on_change(pod, None)

    def remove_pod(self, pod: Pod) -> None:
        """A pod is gone."""
        self._show(pod.name, "gone")
        self.on_change(None, pod)

    async def get_pod(self, namespace: str, name: str) -> Pod:
        self._answer()
        return await super().get_pod(namespace, name)

    async def patch_pod_status(self, namespace: str, name: str, patch: bytes) -> Pod:
        self._answer()
        return await super().patch_pod_status(namespace, name, patch)

    async def delete_pod(
        self, namespace: str, name: str, *, uid: ApiUID, grace_period_seconds: int
    ) -> None:
        self._answer()
        if (stored := self.pod(namespace, name)) is not None and ApiUID(stored.uid) == uid:
            self.before_delete(stored)
        await super().delete_pod(
            namespace, name, uid=uid, grace_period_seconds=grace_period_seconds
        )

    def _answer(self) -> None:
        if self.is_away:
            raise UnavailableError("no answer")

    def _show(self, name: str, looks: str) -> None:
        seen = self.shown.setdefault(name, [])
        if not seen or seen[-1][1] != looks:
            seen.append((self._clock.now() / _SECOND, looks))


class TroubledRuntime(SimulatedRuntime):
    """Simulated containers, by a runtime that may be down, or do nothing and say it did."""

    def __init__(self, clock: Clock, folder: Path | None = None) -> None:
        super().__init__(clock, random=Random(1), folder=folder)
        self.is_down = False
        self.lies = False
        self.interruption = 0.0
        """How many seconds it takes to interrupt a start."""
        self.removal = 0.0
        """How many seconds it takes to remove the files of a pod."""
        self.calls: list[str] = []
        """What it was asked to do, as in `start p a-0`, by the names of pods."""
        self.before_start: Callable[[Pod, Container], None] = lambda *_: None
        self.before_remove: Callable[[PodUID], None] = lambda _: None
        self._names: dict[PodUID, str] = {}

    async def start_pod(self, pod: Pod) -> None:
        self._names[pod.uid] = pod.name
        if self._does("start", pod.uid, "sandbox"):
            await super().start_pod(pod)

    async def start_container(self, pod: Pod, container: Container, *, restart_count: int) -> str:
        if not self._does("start", pod.uid, f"{container.name}-{restart_count}"):
            return "simulated://none"
        self.before_start(pod, container)
        try:
            return await super().start_container(pod, container, restart_count=restart_count)
        except asyncio.CancelledError:
            await self._clock.wait(self.interruption)
            raise

    async def stop_container(self, uid: PodUID, container_id: str, *, grace_seconds: float) -> None:
        name = next((c.name for c in self._containers(uid) if c.id == container_id), "?")
        if self._does("stop", uid, f"{name} within {grace_seconds:g}"):
            await super().stop_container(uid, container_id, grace_seconds=grace_seconds)

    async def stop_pod(self, uid: PodUID) -> None:
        if self._does("stop", uid, "sandbox"):
            await super().stop_pod(uid)

    async def remove_container(self, uid: PodUID, container_id: str) -> None:
        if self._does("remove", uid, "container"):
            await super().remove_container(uid, container_id)

    async def remove_pod(self, uid: PodUID) -> None:
        if self._does("remove", uid, "pod"):
            if self.removal:
                await self._clock.wait(self.removal)
            self.before_remove(uid)
            await super().remove_pod(uid)

    async def list_pods(self, uid: PodUID | None = None) -> Sequence[RuntimePod]:
        if self.is_down:
            raise RuntimeDownError("no answer")
        return await super().list_pods(uid)

    async def crash(self, uid: str) -> None:
        """The containers of a pod are made to end, and not by the agent."""
        for container in self._containers(PodUID(uid)):
            self._request_stop(PodUID(uid), container.id, stop_at=None, kill_at=self._clock.now())

    async def running(self, uid: str) -> list[str]:
        """The containers of a pod that run, also while the runtime does not answer."""
        return self.running_now(uid)

    def running_now(self, uid: str) -> list[str]:
        """The same, for those who cannot wait."""
        containers = self._containers(PodUID(uid))
        return [c.name for c in containers if c.state is ContainerRunState.RUNNING]

    def newest(self, uid: PodUID, container: str) -> ContainerFacts | None:
        """The newest attempt at a container."""
        return next((c for c in self._containers(uid) if c.name == container), None)

    async def has(self, uid: str) -> bool:
        """Whether there is anything of a pod."""
        return bool(await SimulatedRuntime.list_pods(self, PodUID(uid)))

    def _containers(self, uid: PodUID) -> Sequence[ContainerFacts]:
        pod = self._state.runtime_pod(uid)
        return () if pod is None else pod.facts.containers

    def _does(self, verb: str, uid: PodUID, what: str) -> bool:
        if self.is_down:
            raise RuntimeDownError("no answer")
        self.calls.append(f"{verb} {self._names.get(uid, uid)} {what}")
        return not self.lies


def brief(pod: Pod) -> str:
    """Phase, reason and containers of a pod, as in `Running a:CrashLoopBackOff(1)`."""
    status = pod.status
    containers = (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
    reason = f"/{status.reason}" if status.reason else ""
    return " ".join([f"{status.phase or 'new'}{reason}", *map(_brief_container, containers)])


def _brief_container(status: ContainerStatus) -> str:
    ready = "+" if status.ready else ""
    restarts = f"({status.restart_count})" if status.restart_count else ""
    return f"{status.name}:{_brief_state(status.state)}{ready}{restarts}"


def _brief_state(state: ContainerState) -> str:
    if state.terminated is not None:
        return f"exit-{state.terminated.exit_code}"
    if state.running is not None:
        return "running"
    return state.waiting.reason if state.waiting is not None else "?"
