"""A status manager with fakes all around it."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from msgspec import structs

from podstatus.kube.conditions import find_condition
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.pod import Pod, is_mirror_pod, is_static_pod
from podstatus.kube.objects.pod_status import PodCondition, PodStatus
from podstatus.kube.scalars.time import Time
from podstatus.pods.pod_manager import PodManager
from podstatus.status.decide.versioned_status import VersionedStatus
from podstatus.status.manager import StatusManager
from podstatus.status.policy import SyncPolicy
from podstatus.status.ports import PodDeletionSafetyProvider, StatusObserver
from podstatus.testing.clock import FakeClock, run_ready_tasks
from podstatus.testing.fakes import (
    CountingObserver,
    FakeDeletionSafety,
    RecordingNotifier,
    RecordingStartupLatency,
)
from podstatus.testing.in_memory_pod_api import ApiCall, InMemoryPodApi


class Node:
    """Knows the pods given; the API server has them too, static pods through their mirrors."""

    def __init__(
        self,
        *pods: Pod,
        api: InMemoryPodApi | None = None,
        safety: PodDeletionSafetyProvider | None = None,
        observer: StatusObserver | None = None,
        gates: FeatureGates | None = None,
        policy: SyncPolicy | None = None,
    ) -> None:
        self.clock = FakeClock()
        self.api = api or InMemoryPodApi()
        for pod in pods:
            if is_mirror_pod(pod) or not is_static_pod(pod):
                self.api.put(pod)
        self.directory = PodManager(pods)
        self.safety = FakeDeletionSafety()
        self.startup_latency = RecordingStartupLatency()
        self.observer = CountingObserver()
        self.notifier = RecordingNotifier()
        self.manager = StatusManager(
            self.api,
            self.directory,
            safety or self.safety,
            startup_latency=self.startup_latency,
            observer=observer or self.observer,
            clock=self.clock,
            gates=gates,
            policy=policy or SyncPolicy.upstream(),
        )
        self.manager.add_notifier(self.notifier)

    @property
    def now(self) -> Time:
        return Time.from_unix_nanos(self.clock.now())

    def advance(self, seconds: float) -> None:
        asyncio.run(self.clock.advance(seconds))

    def sync(self, *, full: bool = False) -> list[str]:
        """One batch; the API calls it made, as in `get pod` or `patch pod 503`."""
        self.api.calls.clear()
        asyncio.run(self.manager.sync_batch(full=full))
        return [
            " ".join(map(str, filter(None, (call.verb, call.name, call.code))))
            for call in self.api.calls
        ]

    def observe(self, pod: Pod) -> Pod:
        """Let the directory see the API server's copy, as the kubelet's watch does."""
        seen = self.stored(pod)
        self.directory.update_pod(seen)
        return seen

    def stored(self, pod: Pod) -> Pod:
        """The API server's copy."""
        stored = self.api.pod(pod.namespace, pod.name)
        assert stored is not None
        return stored

    def entry(self, pod: Pod) -> VersionedStatus:
        """What is cached for the pod."""
        return self.manager.entries()[pod.uid]

    @property
    def sent(self) -> dict[str, int]:
        """The versions that the API server acknowledged."""
        return {str(uid): version for uid, version in self.manager.sent_versions().items()}

    def verbs(self) -> list[str]:
        """The verbs of the API calls since the last look."""
        calls, self.api.calls = self.api.calls, []
        return [call.verb for call in calls]

    def patches(self) -> list[Any]:
        """The bodies of the patches of the last batch."""
        return [body_of(call) for call in self.api.calls if call.verb == "patch"]


@asynccontextmanager
async def in_loop(node: Node) -> AsyncIterator[asyncio.Task[None]]:
    """The manager's loop, at rest; stopped in the end."""
    loop = asyncio.create_task(node.manager.run())
    await run_ready_tasks()
    try:
        yield loop
    finally:
        node.manager.stop()
        await loop


class HangingApi(InMemoryPodApi):
    """Answers no get until it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = asyncio.Event()
        self.asked = threading.Event()

    async def get_pod(self, namespace: str, name: str) -> Pod:
        self.asked.set()
        await self.answers.wait()
        return await super().get_pod(namespace, name)


def body_of(call: ApiCall) -> Any:
    assert call.patch is not None
    return msgspec.json.decode(call.patch)


def condition_of(status: PodStatus, condition_type: str) -> PodCondition:
    condition = find_condition(status.conditions, condition_type)
    assert condition is not None
    return condition


def deleting(pod: Pod) -> Pod:
    """The pod after somebody asked for its deletion."""
    asked = Time.parse("2024-01-01T00:05:00Z")
    return structs.replace(pod, metadata=structs.replace(pod.metadata, deletion_timestamp=asked))


def of_generation(pod: Pod, generation: int) -> Pod:
    return structs.replace(pod, metadata=structs.replace(pod.metadata, generation=generation))
