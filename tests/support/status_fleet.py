"""Many pods on one node with the default policy, in virtual time."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from podstatus.kube.objects.pod import ApiUID, Pod, PodUID
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.pods.pod_manager import PodManager
from podstatus.status.manager import StatusManager
from podstatus.status.policy import SyncPolicy
from podstatus.status.ports import OutboxEntry, PodReference
from podstatus.testing.builders import make_pod, make_status, running
from podstatus.testing.clock import FakeClock
from podstatus.testing.fakes import CountingObserver, FakeDeletionSafety
from podstatus.testing.in_memory_pod_api import InMemoryPodApi

RUNNING = make_status("Running", running("app", ready=False), Ready="False")
READY = make_status("Running", running("app"), Ready="True")


def saying(message: str, status: PodStatus = RUNNING) -> PodStatus:
    """Return the status with a message that identifies it."""
    return PodStatus(
        phase=status.phase,
        message=message,
        conditions=status.conditions,
        container_statuses=status.container_statuses,
    )


class DistantPodApi(InMemoryPodApi):
    """Each call takes a round trip. Records call times and the maximum concurrency."""

    def __init__(self, clock: FakeClock, round_trip: float, **options: Any) -> None:
        super().__init__(**options)
        self._clock = clock
        self._way = round_trip / 2
        self._in_flight = Counter[str]()
        self.max_in_flight = 0
        self.max_per_pod = 0
        self.times: list[tuple[float, str, str]] = []
        """Time in seconds, verb and pod name of every call."""

    async def get_pod(self, namespace: str, name: str) -> Pod:
        async with self._trip("get", name):
            return await super().get_pod(namespace, name)

    async def patch_pod_status(self, namespace: str, name: str, patch: bytes) -> Pod:
        async with self._trip("patch", name):
            return await super().patch_pod_status(namespace, name, patch)

    async def delete_pod(
        self, namespace: str, name: str, *, uid: ApiUID, grace_period_seconds: int
    ) -> None:
        async with self._trip("delete", name):
            await super().delete_pod(
                namespace, name, uid=uid, grace_period_seconds=grace_period_seconds
            )

    @asynccontextmanager
    async def _trip(self, verb: str, name: str) -> AsyncIterator[None]:
        self.times.append((self._clock.now() / 1e9, verb, name))
        self._in_flight[name] += 1
        self.max_in_flight = max(self.max_in_flight, self._in_flight.total())
        self.max_per_pod = max(self.max_per_pod, self._in_flight[name])
        try:
            await self._clock.wait(self._way)
            yield
            await self._clock.wait(self._way)
        finally:
            self._in_flight[name] -= 1


class RecordedEvents:
    """Records the events of the manager."""

    def __init__(self) -> None:
        self.events: list[tuple[PodReference, str, str]] = []

    def warn(self, pod: PodReference, reason: str, message: str) -> None:
        self.events.append((pod, reason, message))


class MemoryOutbox:
    """An outbox that survives the manager and logs its calls."""

    def __init__(self) -> None:
        self.kept: dict[PodUID, OutboxEntry] = {}
        self.log: list[str] = []

    def load(self) -> Iterable[OutboxEntry]:
        return list(self.kept.values())

    def store(self, entry: OutboxEntry) -> None:
        self.log.append(f"keep {entry.name}")
        self.kept[entry.uid] = entry

    def drop(self, uid: PodUID) -> None:
        self.log.append(f"drop {uid}")
        self.kept.pop(uid, None)


class Fleet:
    """A node with these pods; the watch shows every change immediately, unless it is `deaf`."""

    def __init__(
        self,
        names: Iterable[str],
        *,
        round_trip: float = 0.0,
        policy: SyncPolicy | None = None,
        deaf: bool = False,
        versions: bool = True,
        outbox: MemoryOutbox | None = None,
        rounds: int = 12,
    ) -> None:
        self.clock = FakeClock(rounds=rounds)
        self.directory = PodManager()
        watcher = None if deaf else self.directory
        self.api = DistantPodApi(self.clock, round_trip, versions=versions, watcher=watcher)
        self.pods = [make_pod(name, restart_policy="Never") for name in names]
        for pod in self.pods:
            self.api.put(pod)
            self.watch(pod)
        self.safety = FakeDeletionSafety()
        self.observer = CountingObserver()
        self.recorder = RecordedEvents()
        self.outbox = outbox
        self.policy = policy
        self.manager = self.restart()

    def restart(self) -> StatusManager:
        """Replace the manager as after a crash: only the outbox survives."""
        self.manager = StatusManager(
            self.api,
            self.directory,
            self.safety,
            observer=self.observer,
            events=self.recorder,
            outbox=self.outbox,
            clock=self.clock,
            policy=self.policy,
            recompute_status=self.recompute_status,
        )
        return self.manager

    def recompute_status(self, uid: PodUID) -> bool:
        """Return whether the node sets a new status after a foreign write."""
        return False

    def watch(self, pod: Pod) -> Pod:
        """Deliver the API server's copy through the watch."""
        stored = self.stored(pod)
        self.directory.update_pod(stored)
        return stored

    def stored(self, pod: Pod) -> Pod:
        stored = self.api.pod(pod.namespace, pod.name)
        assert stored is not None
        return stored

    def message(self, pod: Pod) -> str:
        """Return the message of the API server's status."""
        return self.stored(pod).status.message

    def set(self, pod: Pod, message: str, status: PodStatus = RUNNING) -> None:
        """Set the pod's status in the manager."""
        self.manager.set_pod_status(pod, saying(message, status))

    async def set_and_wait(
        self, pod: Pod, message: str, status: PodStatus = RUNNING, *, seconds: float = 0
    ) -> None:
        """Set the pod's status and let this time pass; 0 lets the manager send it."""
        self.set(pod, message, status)
        await self.clock.advance(seconds)

    def calls(self) -> list[str]:
        """Return and clear the recorded calls, such as `get a` or `patch a 503`."""
        calls, self.api.calls = self.api.calls, []
        return [" ".join(map(str, filter(None, (c.verb, c.name, c.code)))) for c in calls]

    def now(self) -> float:
        return self.clock.now() / 1e9

    @asynccontextmanager
    async def running(self) -> AsyncIterator[asyncio.Task[None]]:
        """Run the manager's sync loop, and stop it on exit."""
        loop = asyncio.create_task(self.manager.run())
        await self.clock.advance(0)
        try:
            yield loop
        finally:
            self.manager.stop(drain=0)
            await loop
